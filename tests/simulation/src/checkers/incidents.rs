//! Incidents move as their states allow, there is one per dispatch, and it agrees with the dispatch after every transaction.

use swarm_domain::incident::{IncidentEvent, IncidentState};

use crate::checkers::alerts;
use crate::process::{Actor, Process};
use crate::watch::{Change, DispatchRow, IncidentRow};
use crate::witness::EventNo;
use crate::world::World;

/// How incidents move.
pub const MOVES: &str = "incidents move as they may";
/// What dispatch and incident say of each other.
pub const AGREE: &str = "ledger, dispatches and incidents agree";

/// Takes note of an incident's change and looks at it. Answers the dispatch that it is about.
pub fn changed(world: &World, process: &Process, change: &Change) -> Option<(EventNo, String)> {
    let Change::Incident { key: [tenant, event, topic], id, old, new } = change else { return None };
    alerts::marked(world, old.as_ref(), new.as_ref());
    if tenant.is_empty() {
        foreign(world, process, id, new.as_ref());
        return None;
    }
    let number = world.witness.borrow().event_no(tenant, event)?;
    if old != new {
        process.note(Some(number), || {
            format!("incident {topic}: {} → {}", shown(old.as_ref()), shown(new.as_ref()))
        });
    }
    let mut witness = world.witness.borrow_mut();
    let facts = witness.dispatch(number, topic);
    let twice = old.is_none() && facts.incident.is_some();
    facts.incident = new.clone();
    if witness.incidents.insert(id.clone(), (number, topic.clone())).is_none() {
        witness.incident_order.push(id.clone());
    }
    drop(witness);
    if twice {
        world.violation(MOVES, Some(number), format!("a second incident for {topic}"));
    }
    // What comes back from the archive is in the state in which it went.
    let restored = old.is_none() && process.actor == Actor::Restorer;
    if let Some(problem) = problem(old.as_ref(), new.as_ref()).filter(|_| !restored) {
        let text =
            format!("incident of {topic}: {problem}, {} → {}", shown(old.as_ref()), shown(new.as_ref()));
        world.violation(MOVES, Some(number), text);
    }
    Some((number, topic.clone()))
}

fn foreign(world: &World, process: &Process, id: &str, new: Option<&IncidentRow>) {
    process.note(None, || format!("foreign incident {id}: {}", shown(new)));
    let mut witness = world.witness.borrow_mut();
    match new {
        Some(row) => witness.foreign.insert(id.to_owned(), row.clone()),
        None => witness.foreign.remove(id),
    };
}

/// What is wrong with a change, if anything.
fn problem(old: Option<&IncidentRow>, new: Option<&IncidentRow>) -> Option<&'static str> {
    let new = new?;
    let Some(old) = old else {
        return (new.status != "open" || new.retry_count != 0).then_some("it was not born open");
    };
    let (Some(from), Some(to)) = (IncidentState::named(&old.status), IncidentState::named(&new.status))
    else {
        return Some("it is in no state");
    };
    if new.generation > old.generation {
        let reported = to == IncidentState::Open && new.retry_count == old.retry_count + 1;
        return (!reported).then_some("a later failure does not reopen it once");
    }
    if new.generation < old.generation || new.retry_count != old.retry_count {
        return Some("the same failure counts again");
    }
    const STEPS: [IncidentEvent; 4] =
        [IncidentEvent::Triage, IncidentEvent::Ignore, IncidentEvent::Replay, IncidentEvent::Deliver];
    let may = from == to || STEPS.iter().any(|step| from.after(*step) == Ok(to));
    (!may).then_some("it may not move so")
}

/// Whether a dispatch and its incident say the same, after the transaction that touched either.
pub fn agree(world: &World, event: EventNo, topic: &str) {
    let mut witness = world.witness.borrow_mut();
    let facts = witness.dispatch(event, topic);
    let delivered = facts.repetitions.iter().rev().find(|(_, r)| r.delivered > 0).map(|(g, _)| *g);
    let problem = disagreement(facts.row.as_ref(), facts.incident.as_ref(), delivered);
    let shown = problem.map(|problem| {
        format!("{topic}: {problem}; dispatch {:?}, incident {}", facts.row, shown(facts.incident.as_ref()))
    });
    drop(witness);
    if let Some(text) = shown {
        world.violation(AGREE, Some(event), text);
    }
}

fn disagreement(
    row: Option<&DispatchRow>,
    incident: Option<&IncidentRow>,
    delivered: Option<u32>,
) -> Option<&'static str> {
    let Some(row) = row else {
        // A dispatch goes when its event is archived, and never before its incident is closed.
        let open =
            incident.is_some_and(|incident| !matches!(incident.status.as_str(), "resolved" | "ignored"));
        return open.then_some("an open incident without its dispatch");
    };
    let dead = matches!(row.status.as_str(), "dead_lettered" | "dlq_abandoned");
    let reported = incident.is_some_and(|incident| incident.generation == row.replays);
    if dead && row.next_retry_at.is_none() && !reported {
        return Some("a dispatch at rest in death without its incident");
    }
    let incident = incident?;
    if row.replays < incident.generation {
        return Some("an incident of a generation that is yet to come");
    }
    match incident.status.as_str() {
        "open" | "triaged" if row.replays == incident.generation && !dead => {
            Some("an open incident of a dispatch that is not dead")
        }
        "open" | "triaged" | "retrying" | "ignored"
            if delivered.is_some_and(|delivered| delivered > incident.generation) =>
        {
            Some("a delivered dispatch with an incident that is not resolved")
        }
        "retrying" if row.replays == incident.generation => Some("an incident is retried by nobody"),
        "resolved" if delivered.is_none_or(|delivered| delivered <= incident.generation) => {
            Some("a resolved incident of a dispatch that was not delivered")
        }
        _ => None,
    }
}

fn shown(row: Option<&IncidentRow>) -> String {
    let Some(row) = row else { return "none".to_owned() };
    let mut text = format!("{} g{} retries {}", row.status, row.generation, row.retry_count);
    if let Some(at) = &row.alert_at {
        text.push_str(&format!(" alert at {at}"));
    }
    text
}
