//! Every committed change of a dispatch: it moves as its states allow, is delivered by who handled it, and leaves its effect
//! exactly then.

use swarm_domain::states::{DispatchEvent, DispatchState};

use crate::checkers::archive::{self, RETENTION};
use crate::checkers::{alerts, incidents, operations};
use crate::process::{Actor, Process};
use crate::watch::{Change, DispatchRow};
use crate::witness::EventNo;
use crate::world::World;

/// The names of this file's checkers.
pub const STATES: &str = "states";
/// `delivered` follows from handling, by whoever holds the lease.
pub const DELIVERED: &str = "delivered only by who handled it";
/// One effect for each delivery, in its transaction.
pub const EFFECTS: &str = "effects exactly once";
/// What counts as enqueued has been in its queue.
pub const ENQUEUED: &str = "enqueued only after its queue took it";
/// A lane belongs to one run at a time.
pub const LANES: &str = "lanes are not taken away";

/// By how much two Workers' clocks may differ.
const SKEW_MS: i64 = 31_000;

/// Takes note of what a transaction changed, and looks at each change.
pub fn committed(world: &World, process: &Process, changes: Vec<Change>) {
    let effects: Vec<_> = changes.iter().filter_map(effect).collect();
    let mut touched: Vec<(EventNo, String)> = Vec::new();
    for change in &changes {
        match change {
            Change::Dispatch { key: [tenant, event, topic], old, new } => {
                let Some(event) = event_of(world, tenant, event) else { continue };
                dispatch(world, process, event, topic, old.as_ref(), new.as_ref());
                if became_delivered(old.as_ref(), new.as_ref()) {
                    let [of_tenant, of_event, of_topic] = change_key(change);
                    let count = effects.iter().filter(|e| **e == [of_tenant, of_event, of_topic]).count();
                    if count != 1 {
                        world.violation(
                            EFFECTS,
                            Some(event),
                            format!("{count} effects with `delivered` for {topic}"),
                        );
                    }
                }
                touched.push((event, topic.clone()));
            }
            Change::Event { key: [tenant, event], stored } => {
                let Some(event) = event_of(world, tenant, event) else { continue };
                recorded(world, process, event, stored.as_deref());
            }
            Change::Effect { key: [tenant, event, topic], generation } => {
                let Some(event) = event_of(world, tenant, event) else { continue };
                let mut witness = world.witness.borrow_mut();
                let repetition = witness.dispatch(event, topic).repetition(*generation);
                repetition.effects += 1;
                let effects = repetition.effects;
                drop(witness);
                process.note(Some(event), || format!("effect of {topic}, generation {generation}"));
                if effects > 1 {
                    let text = format!("{effects} effects of generation {generation} for {topic}");
                    world.violation(EFFECTS, Some(event), text);
                }
            }
            Change::Incident { .. } => touched.extend(incidents::changed(world, process, change)),
            Change::Operation { .. } => operations::logged(world, process, change),
            Change::Alert { .. } => alerts::changed(world, process, change),
            Change::Lane { lane, old, new } => lane_changed(world, process, lane, old.as_ref(), new.as_ref()),
        }
    }
    operations::agree(world, process, &changes);
    for (event, topic) in touched {
        incidents::agree(world, event, &topic);
    }
}

fn effect(change: &Change) -> Option<[&str; 3]> {
    matches!(change, Change::Effect { .. }).then(|| change_key(change))
}

fn change_key(change: &Change) -> [&str; 3] {
    match change {
        Change::Dispatch { key: [a, b, c], .. } | Change::Effect { key: [a, b, c], .. } => [a, b, c],
        _ => ["", "", ""],
    }
}

fn event_of(world: &World, tenant: &str, event: &str) -> Option<EventNo> {
    let number = world.witness.borrow().event_no(tenant, event);
    if number.is_none() {
        world.violation(STATES, None, format!("{tenant}/{event} is in the ledger, and nobody published it"));
    }
    number
}

fn became_delivered(old: Option<&DispatchRow>, new: Option<&DispatchRow>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => new.status == "delivered" && old.status != "delivered",
        _ => false,
    }
}

fn recorded(world: &World, process: &Process, number: EventNo, stored: Option<&str>) {
    let mut witness = world.witness.borrow_mut();
    let event = witness.event(number);
    match stored {
        Some(hash) => {
            event.recorded += 1;
            event.stored = Some(hash.to_owned());
        }
        None => event.deleted += 1,
    }
    let known = stored.is_none_or(|hash| event.offered.iter().any(|offered| offered == hash));
    drop(witness);
    process
        .note(Some(number), || if stored.is_some() { "recorded".to_owned() } else { "deleted".to_owned() });
    if !known {
        world.violation("payloads", Some(number), "recorded with a payload that nobody sent".to_owned());
    }
    if stored.is_none() {
        archive::deleted(world, process, number);
    }
}

fn dispatch(
    world: &World,
    process: &Process,
    event: EventNo,
    topic: &str,
    old: Option<&DispatchRow>,
    new: Option<&DispatchRow>,
) {
    if old == new {
        return;
    }
    process.note(Some(event), || format!("{topic}: {} → {}", shown(old), shown(new)));
    let mut witness = world.witness.borrow_mut();
    let facts = witness.dispatch(event, topic);
    if old.is_some_and(|old| old.lease_holder.is_some()) && new.is_some_and(|new| new.lease_holder.is_none())
    {
        facts.freed = Some((world.executor.now_ms(), process.id));
    }
    facts.row = new.cloned();
    drop(witness);
    let Some(new) = new else {
        let at_rest = old.is_some_and(|row| row.next_retry_at.is_none() && row.lease_holder.is_none());
        if !at_rest || process.actor != Actor::Keeper {
            world.violation(RETENTION, Some(event), format!("{topic} was deleted while {}", shown(old)));
        }
        return;
    };
    let Some(old) = old else {
        match process.actor {
            Actor::Restorer => {}
            _ if new.status != "pending" => {
                world.violation(STATES, Some(event), format!("{topic} was born {}", new.status));
            }
            // Recorded once more after it was deleted, an event begins a new life.
            Actor::Core => world.witness.borrow_mut().dispatch(event, topic).repetitions.clear(),
            _ => {}
        }
        return;
    };
    if !may_move(old, new) {
        world.violation(
            STATES,
            Some(event),
            format!("{topic} went from {} to {}", shown(Some(old)), shown(Some(new))),
        );
    }
    if new.status == "delivered" && old.status != "delivered" {
        delivered(world, process, event, topic, old);
    }
    if new.status == "enqueued" && old.status != "enqueued" {
        let mut witness = world.witness.borrow_mut();
        let sent = witness.dispatch(event, topic).repetition(new.replays).sent;
        drop(witness);
        if sent == 0 {
            let text =
                format!("{topic} counts as enqueued, and its queue never took generation {}", new.replays);
            world.violation(ENQUEUED, Some(event), text);
        }
    }
}

fn delivered(world: &World, process: &Process, event: EventNo, topic: &str, old: &DispatchRow) {
    let mut witness = world.witness.borrow_mut();
    let repetition = witness.dispatch(event, topic).repetition(old.replays);
    repetition.delivered += 1;
    let (times, handled) = (repetition.delivered, repetition.handled);
    drop(witness);
    let holder = old.lease_holder.as_deref().unwrap_or_default();
    if times > 1 {
        world.violation(
            DELIVERED,
            Some(event),
            format!("{topic} was delivered {times} times in one generation"),
        );
    } else if handled == 0 {
        let text = format!("{topic} generation {} is delivered, and no handler has handled it", old.replays);
        world.violation(DELIVERED, Some(event), text);
    } else if !holder.ends_with(&format!("-{}", process.id)) {
        let text = format!("{topic} was delivered by #{} while '{holder}' held the lease", process.id);
        world.violation(DELIVERED, Some(event), text);
    }
}

/// Whether one statement may have moved a row like this: at most a failed send and giving up, or a replay, which is the only
/// way into the next generation.
fn may_move(old: &DispatchRow, new: &DispatchRow) -> bool {
    let (Some(from), Some(to)) = (state(&old.status), state(&new.status)) else { return false };
    if new.replays == old.replays + 1 {
        return from.after(DispatchEvent::Replay) == Ok(to);
    }
    if new.replays != old.replays {
        return false;
    }
    const STEPS: [DispatchEvent; 6] = [
        DispatchEvent::Claim,
        DispatchEvent::Sent,
        DispatchEvent::SendFailed,
        DispatchEvent::Abandon,
        DispatchEvent::Deliver,
        DispatchEvent::DeadLetter,
    ];
    let steps = |from: DispatchState| STEPS.into_iter().filter_map(move |step| from.after(step).ok());
    from == to || steps(from).any(|middle| middle == to || steps(middle).any(|end| end == to))
}

fn state(name: &str) -> Option<DispatchState> {
    DispatchState::ALL.into_iter().find(|state| state.name() == name)
}

fn lane_changed(
    world: &World,
    process: &Process,
    lane: &str,
    old: Option<&(String, String)>,
    new: Option<&(String, String)>,
) {
    let (Some((old_holder, until)), Some((new_holder, _))) = (old, new) else { return };
    if old_holder == new_holder {
        return;
    }
    process.note(None, || format!("lane {lane}: {old_holder} → {new_holder}"));
    let latest = swarm_domain::time::Timestamp::from_unix_ms(world.executor.now_ms() + SKEW_MS);
    if *until > latest.to_string() {
        let text = format!("lane {lane} of {old_holder} until {until} was taken by {new_holder}");
        world.violation(LANES, None, text);
    }
}

fn shown(row: Option<&DispatchRow>) -> String {
    let Some(row) = row else { return "none".to_owned() };
    let mut text = row.status.clone();
    if row.replays > 0 {
        text.push_str(&format!(" g{}", row.replays));
    }
    if let Some(holder) = &row.lease_holder {
        text.push_str(&format!(" leased by {holder}"));
    }
    if let Some(due) = &row.next_retry_at {
        text.push_str(&format!(" due {due}"));
    }
    text
}
