//! What must be when the storm is over and everything had its time.

use swarm_domain::states::{DispatchState, EventState};

use serde::Deserialize;

use crate::checkers::{alerts, operations};
use crate::witness::{DispatchFacts, EventFacts, EventNo};
use crate::world::World;

/// Nothing acknowledged is lost.
pub const LOST: &str = "nothing acknowledged is lost";
/// Clients are answered in the end.
pub const ANSWERED: &str = "every client is answered in the end";
/// Everything comes to an end.
pub const ENDS: &str = "each ends delivered, undelivered or in an incident";

/// What is still to happen by itself, if anything is.
pub fn unrest(world: &World) -> Option<&'static str> {
    let now = world.now_text();
    let witness = world.witness.borrow();
    let restless = witness.events.iter().any(|event| !event_rests(event, &now));
    drop(witness);
    if restless {
        Some("an event is not at rest")
    } else if !world.broker.is_empty() {
        Some("a message is in a queue")
    } else if operations::running(world) > 0 {
        Some("a replay of many is running")
    } else if alerts::unsent(world) > 0 {
        Some("an alert waits to be sent")
    } else {
        None
    }
}

fn event_rests(event: &EventFacts, now: &str) -> bool {
    (!event.wanted || event.acknowledged) && event.dispatches.values().all(|facts| dispatch_rests(facts, now))
}

fn dispatch_rests(facts: &DispatchFacts, now: &str) -> bool {
    is_alerted(facts, now)
        && facts.row.as_ref().is_none_or(|row| row.next_retry_at.is_none() && row.lease_holder.is_none())
}

/// Looks at everything.
pub fn check(world: &World) {
    let now = world.now_text();
    let count = world.witness.borrow().events.len();
    for number in 0..count as EventNo {
        let problems = event_problems(world.witness.borrow_mut().event(number), &now);
        for (checker, text) in problems {
            world.violation(checker, Some(number), text);
        }
    }
    derived_states(world);
    if let Some(unrest) = unrest(world) {
        world.violation(ENDS, None, format!("with all the time in the world, {unrest}"));
    }
    operations::check(world);
    alerts::check(world);
}

fn event_problems(event: &EventFacts, now: &str) -> Vec<(&'static str, String)> {
    let mut problems = Vec::new();
    let there = event.recorded > event.deleted;
    if event.wanted && !event.acknowledged {
        problems.push((ANSWERED, "its client never learned that it is recorded".to_owned()));
    }
    if event.acknowledged && event.recorded == 0 {
        problems.push((LOST, "acknowledged, and not in the ledger".to_owned()));
    }
    if event.recorded > event.deleted + 1 {
        problems.push((LOST, format!("recorded {} times", event.recorded)));
    }
    for topic in event.topics.iter().filter(|_| there) {
        if event.dispatches.get(topic).is_none_or(|facts| facts.row.is_none()) {
            problems.push((LOST, format!("recorded, and no dispatch to {topic}")));
        }
    }
    for (topic, facts) in &event.dispatches {
        problems.extend(
            dispatch_problem(facts, now).map(|(checker, text)| (checker, format!("{topic}: {text}"))),
        );
    }
    problems
}

fn dispatch_problem(facts: &DispatchFacts, now: &str) -> Option<(&'static str, String)> {
    let row = facts.row.as_ref()?;
    let dead = matches!(row.status.as_str(), "dead_lettered" | "dlq_abandoned");
    if row.status != "delivered" && !(dead && facts.incident.is_some()) {
        return Some((ENDS, format!("still {} with all the time in the world: {row:?}", row.status)));
    }
    if row.next_retry_at.is_some() || row.lease_holder.is_some() {
        return Some((ENDS, format!("at rest and still waiting or leased: {row:?}")));
    }
    let untold =
        (!is_alerted(facts, now)).then(|| format!("nobody was told of its incident: {:?}", facts.incident));
    untold.map(|text| (alerts::ALERTED, text))
}

/// Whether operators were told of an incident: nothing about it is due any more, and it was told of if it is still theirs to
/// close.
fn is_alerted(facts: &DispatchFacts, now: &str) -> bool {
    facts.incident.as_ref().is_none_or(|incident| {
        let closed = matches!(incident.status.as_str(), "resolved" | "ignored");
        let due = incident.alert_at.as_deref().is_some_and(|at| at <= now);
        !due && (closed || incident.alerted_at.is_some())
    })
}

#[derive(Deserialize)]
struct Derived {
    tenant_id: String,
    event_id: String,
    status: EventState,
}

/// The view must say of each event what its dispatches say.
fn derived_states(world: &World) {
    for row in world.rows::<Derived>("SELECT tenant_id, event_id, status FROM event_status") {
        let number = world.witness.borrow().event_no(&row.tenant_id, &row.event_id);
        let Some(number) = number else { continue };
        let mut witness = world.witness.borrow_mut();
        let rows = witness.event(number).dispatches.values().filter_map(|facts| facts.row.as_ref());
        let named = |status: &str| DispatchState::ALL.into_iter().find(|state| state.name() == status);
        let states: Vec<DispatchState> = rows.filter_map(|row| named(&row.status)).collect();
        drop(witness);
        if EventState::of(&states) != row.status {
            let text = format!("the ledger calls it {:?}, its dispatches are {states:?}", row.status);
            world.violation(super::incidents::AGREE, Some(number), text);
        }
    }
}
