//! Every payload is where its row says, to the byte.

use serde::Deserialize;
use swarm_domain::ids::payload_hash;
use swarm_domain::payload::is_blob_of;
use swarm_domain::ports::Blobs;
use swarm_native::block_on;

use crate::checkers::handling::PAYLOADS;
use crate::world::World;

#[derive(Deserialize)]
struct Row {
    tenant_id: String,
    event_id: String,
    payload: Option<String>,
    payload_ref: Option<String>,
    payload_hash: String,
}

/// Looks at every row of the ledger.
pub fn check(world: &World) {
    let sql = "SELECT tenant_id, event_id, payload, payload_ref, payload_hash FROM event_ledger";
    for row in world.rows::<Row>(sql) {
        let text = match (&row.payload, &row.payload_ref) {
            (Some(text), _) => Some(text.clone()),
            (None, Some(key)) => blob(world, key),
            (None, None) => None,
        };
        let intact = text.is_some_and(|text| payload_hash(&text) == row.payload_hash);
        let referred = row.payload_ref.is_none_or(|key| is_blob_of(&key, &row.payload_hash));
        let event = world.witness.borrow().event_no(&row.tenant_id, &row.event_id);
        let stored = event.and_then(|event| world.witness.borrow_mut().event(event).stored.clone());
        if !intact || !referred || stored.as_deref() != Some(&row.payload_hash) {
            world.violation(PAYLOADS, event, "the ledger's payload is not what was recorded".to_owned());
        }
    }
}

fn blob(world: &World, key: &str) -> Option<String> {
    let bytes = block_on(world.blobs.get(key)).ok().flatten()?;
    String::from_utf8(bytes).ok()
}
