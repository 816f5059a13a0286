//! What operators did is in their log, once, in the transaction that did it; and what was replayed is on its way.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::process::{Actor, Process};
use crate::watch::Change;
use crate::world::World;

/// The log agrees with what was done.
pub const LOGGED: &str = "one line in the log for each operation";

/// A dispatch is repeated together with its incident.
pub const REPLAYED: &str = "a replay moves dispatch and incident together";
/// Replays of many end.
pub const ENDS: &str = "every replay of many ends";

/// Takes note of a line in the log.
pub fn logged(world: &World, process: &Process, change: &Change) {
    let Change::Operation { op_id, action, incident_id } = change else { return };
    let incident = incident_id.as_deref().unwrap_or_default();
    let mut witness = world.witness.borrow_mut();
    let event = witness.incidents.get(incident).map(|(event, _)| *event);
    let first = witness.logged.insert(op_id.clone());
    drop(witness);
    process.note(event, || format!("logged: {action} {incident}"));
    if !first {
        world.violation(LOGGED, event, format!("operation {op_id} is logged twice"));
    }
}

/// Whether a transaction logged exactly those incidents that it moved on an operator's wish.
pub fn agree(world: &World, process: &Process, changes: &[Change]) {
    if process.actor == Actor::Operator {
        replays_agree(world, changes);
    }
    let moved: BTreeSet<&str> = changes.iter().filter_map(moved_by_operator).collect();
    let logged = |change: &'_ Change| match change {
        Change::Operation { incident_id: Some(id), .. } => Some(id.clone()),
        _ => None,
    };
    let logged: BTreeSet<String> = changes.iter().filter_map(logged).collect();
    let unlogged = moved.iter().find(|id| !logged.contains(**id));
    let unmoved = logged.iter().find(|id| !moved.contains(id.as_str()));
    let event = |id: &str| world.witness.borrow().incidents.get(id).map(|(event, _)| *event);
    // A restore has one line for all that it repeats.
    if let Some(id) = unlogged.filter(|_| process.actor != Actor::Restorer) {
        world.violation(LOGGED, event(id), format!("incident {id} was moved without a line in the log"));
    }
    if let Some(id) = unmoved {
        world.violation(LOGGED, event(id), format!("the log tells of incident {id}, which was not moved"));
    }
}

/// Whether a replay of one incident moved its dispatch and the incident, or neither.
fn replays_agree(world: &World, changes: &[Change]) {
    let repeated = changes.iter().filter_map(|change| match change {
        Change::Dispatch { key, old: Some(old), new: Some(new) } if new.replays > old.replays => Some(key),
        _ => None,
    });
    let retried = changes.iter().filter_map(|change| match change {
        Change::Incident { key, old: Some(old), new: Some(new), .. } => {
            (new.status == "retrying" && old.status != "retrying").then_some(key)
        }
        _ => None,
    });
    let (repeated, retried): (BTreeSet<_>, BTreeSet<_>) = (repeated.collect(), retried.collect());
    if let Some([tenant, event, topic]) = repeated.symmetric_difference(&retried).next() {
        let number = world.witness.borrow().event_no(tenant, event);
        world.violation(
            REPLAYED,
            number,
            format!("a replay moved only one of the dispatch to {topic} and its incident"),
        );
    }
}

fn moved_by_operator(change: &Change) -> Option<&str> {
    let Change::Incident { id, old: Some(old), new: Some(new), .. } = change else { return None };
    let by_operator = matches!(new.status.as_str(), "triaged" | "ignored" | "retrying");
    (by_operator && old.status != new.status).then_some(id.as_str())
}

/// How many replays of many are not done with.
pub fn running(world: &World) -> usize {
    #[derive(Deserialize)]
    struct Row {
        n: usize,
    }
    world
        .rows::<Row>("SELECT count(*) AS n FROM replays WHERE status = 'running'")
        .iter()
        .map(|row| row.n)
        .sum()
}

/// Whether every replay of many has come to its end, and whether the log has every operation of which an operator was told that it is done.
pub fn check(world: &World) {
    let running = running(world);
    if running > 0 {
        world.violation(ENDS, None, format!("{running} replays of many are still running"));
    }
    let witness = world.witness.borrow();
    let missing = witness.operations.difference(&witness.logged).next().cloned();
    drop(witness);
    if let Some(op_id) = missing {
        world.violation(LOGGED, None, format!("operation {op_id} is done and not in the log"));
    }
}
