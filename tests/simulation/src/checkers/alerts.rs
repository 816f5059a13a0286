//! Operators hear of every incident: it counts as told of only when an alert is written down, and every alert reaches its sink.

use serde::Deserialize;

use crate::process::Process;
use crate::watch::{Change, IncidentRow};
use crate::world::World;

/// No incident counts as told of without an alert.
pub const TOLD: &str = "told of only with an alert";
/// Every alert reaches its sink.
pub const SENT: &str = "every alert reaches its sink";
/// Every incident has its alert.
pub const ALERTED: &str = "every open incident is alerted";

#[derive(Deserialize)]
struct Document {
    r#type: String,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    count: u64,
}

/// Takes note of an alert that was written down or sent.
pub fn changed(world: &World, process: &Process, change: &Change) {
    let Change::Alert { id, sink, old, new } = change else { return };
    let mut witness = world.witness.borrow_mut();
    match new {
        Some((body, sent)) => {
            witness.alerts.insert(id.clone(), sent.is_some());
            if old.is_none()
                && let Ok(document) = serde_json::from_str::<Document>(body)
                && document.r#type.starts_with("swarm.incidents")
            {
                *witness.told.entry(sink.clone()).or_default() += document.data.count;
            }
        }
        None => drop(witness.alerts.remove(id)),
    }
    drop(witness);
    let what = if new.as_ref().is_some_and(|(_, sent)| sent.is_some()) { "sent" } else { "written" };
    process.note(None, || format!("alert {id} to {sink} {what}"));
}

/// An incident's row changed: if it counts as told of now, there must be alerts that tell of as many incidents.
pub fn marked(world: &World, old: Option<&IncidentRow>, new: Option<&IncidentRow>) {
    let (Some(old), Some(new)) = (old, new) else { return };
    if new.alerted_at.is_none() || new.alerted_at == old.alerted_at {
        return;
    }
    let mut witness = world.witness.borrow_mut();
    witness.marked += 1;
    let marked = witness.marked;
    let sinks = world.plan.sinks.iter().map(|sink| &sink.name);
    let silent = sinks.into_iter().find(|sink| witness.told.get(*sink).copied().unwrap_or_default() < marked);
    let silent = silent.cloned();
    drop(witness);
    if let Some(sink) = silent {
        let text = format!("{marked} incidents count as told of, and fewer alerts to {sink} tell of any");
        world.violation(TOLD, None, text);
    }
}

/// How many alerts are still to be sent.
pub fn unsent(world: &World) -> usize {
    world.witness.borrow().alerts.values().filter(|sent| !**sent).count()
}

/// Whether all alerts were sent in the end, and sinks have seen them.
pub fn check(world: &World) {
    let unsent = unsent(world);
    let witness = world.witness.borrow();
    let posts: u64 = witness.posts.values().sum();
    let alerts = witness.alerts.len() as u64;
    drop(witness);
    if unsent > 0 {
        world.violation(SENT, None, format!("{unsent} alerts were never sent"));
    }
    if posts < alerts {
        world.violation(SENT, None, format!("{alerts} alerts were sent in {posts} posts"));
    }
}
