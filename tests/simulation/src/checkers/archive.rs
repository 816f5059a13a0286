//! What retention deletes is in the archive, to the byte, before it goes.

use std::collections::BTreeSet;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use swarm_domain::ids::payload_hash;
use swarm_domain::ports::Blobs;
use swarm_domain::retention::ARCHIVE_PREFIX;
use swarm_native::block_on;

use crate::process::{Actor, Process};
use crate::witness::EventNo;
use crate::world::World;

/// Nothing is deleted that is open or not in the archive.
pub const RETENTION: &str = "only what is closed and archived is deleted";

/// Events by tenant, id and the hash of their payload.
pub type Archived = BTreeSet<(String, String, String)>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    tenant_id: String,
    event_id: String,
    payload_json: Option<String>,
    payload_ref: Option<String>,
    payload_hash: String,
}

/// Whether an object is a part of the archive that holds events.
pub fn is_part(key: &str) -> bool {
    key.starts_with(ARCHIVE_PREFIX) && key.ends_with(".ndjson.gz")
}

/// An object was stored; if it is a part of the archive, its events are known from now on.
pub fn stored(world: &World, process: &Process, key: &str) {
    if !is_part(key) {
        return;
    }
    let object = block_on(world.blobs.get(key)).ok().flatten().unwrap_or_default();
    let mut text = String::new();
    if let Err(error) = MultiGzDecoder::new(object.as_slice()).read_to_string(&mut text) {
        return world.violation(RETENTION, None, format!("{key} is not readable: {error}"));
    }
    for line in text.lines() {
        let Ok(line) = serde_json::from_str::<Line>(line) else {
            return world.violation(RETENTION, None, format!("{key} has a line that is none"));
        };
        if payload_of(world, &line).is_some_and(|payload| payload_hash(&payload) == line.payload_hash) {
            let event = world.witness.borrow().event_no(&line.tenant_id, &line.event_id);
            process.note(event, || format!("archived in {key}"));
            let known = (line.tenant_id, line.event_id, line.payload_hash);
            world.witness.borrow_mut().archived.insert(known);
        }
    }
}

fn payload_of(world: &World, line: &Line) -> Option<String> {
    match (&line.payload_json, &line.payload_ref) {
        (Some(text), _) => Some(text.clone()),
        (None, Some(key)) => String::from_utf8(block_on(world.blobs.get(key)).ok().flatten()?).ok(),
        (None, None) => None,
    }
}

/// An event's row was deleted.
pub fn deleted(world: &World, process: &Process, event: EventNo) {
    let mut witness = world.witness.borrow_mut();
    let facts = witness.event(event);
    let known = (facts.tenant.clone(), facts.id.clone(), facts.stored.clone().unwrap_or_default());
    let archived = witness.archived.contains(&known);
    drop(witness);
    if process.actor != Actor::Keeper {
        world.violation(RETENTION, Some(event), "deleted by somebody else than retention".to_owned());
    }
    if !archived {
        world.violation(RETENTION, Some(event), "deleted, and not in the archive".to_owned());
    }
}
