//! What operators work with: failures to look at, and consumers that work again.

use std::sync::LazyLock;

use serde::Deserialize;
use swarm_domain::incident::{
    ForeignReport, Incident, Kind, Operation, Operations, Report, foreign_id, incident_id, report,
    report_foreign,
};
use swarm_domain::lease::{Lease, Outcome, settle, take};
use swarm_domain::ledger::DispatchKey;
use swarm_domain::limits::IN_TRANSIT_DEADLINE_MS_DEFAULT;
use swarm_domain::message::Message;
use swarm_domain::ports::{Clock, Sql, Statement};
use swarm_domain::replay::{Jobs, Replayer};
use swarm_native::{Flaky, ManualClock, block_on};

use super::{PartlyDown, Shard, World, event_of, run};

/// A dispatch in the row of a database.
#[derive(Deserialize)]
struct Row {
    #[serde(flatten)]
    key: DispatchKey,
    replays: u32,
}

static GIVE_UP: LazyLock<String> = LazyLock::new(|| {
    "UPDATE event_dispatches SET status = 'dead_lettered', next_retry_at = NULL, claimed_by = NULL, updated_at = ?1
      WHERE status IN ('pending', 'failed', 'enqueued') RETURNING tenant_id, event_id, topic, replays"
        .to_owned()
});

/// Everything that is on its way fails for good, and its incidents are there.
pub fn fail_everything(world: &World, error: &str) {
    for name in ["billing.events", "audit.events"] {
        world.take(name);
    }
    let now = world.clock.now();
    for (_, shard) in world.ledger.shards() {
        let rows = run(shard.port(), &GIVE_UP, vec![now.into()]);
        let rows: Vec<Row> = rows.into_iter().map(|row| serde_json::from_value(row).unwrap()).collect();
        for rows in rows.chunks(1_000) {
            let reports: Vec<_> = rows.iter().map(|row| failure(row, error)).collect();
            block_on(shard.port().batch(vec![report(&reports, now).unwrap()])).unwrap();
        }
    }
}

fn failure(row: &Row, error: &str) -> Report {
    Report {
        key: row.key.clone(),
        incident_id: incident_id(&row.key),
        kind: Kind::DeadLetter,
        source_queue: row.key.topic.queue(),
        generation: row.replays,
        error: Some(error.to_owned()),
        stack: Some("at handler".to_owned()),
    }
}

/// One event of a tenant that fails; the id of its incident.
pub fn incident_of(world: &World, tenant: &str, id: &str, event_type: &str, error: &str) -> String {
    world.publish(event_of(tenant, id, event_type, "{\"n\":1.0}"));
    fail_everything(world, error);
    incident_id(&DispatchKey {
        tenant_id: tenant.to_owned(),
        event_id: id.to_owned(),
        topic: super::topic("billing.events"),
    })
}

/// An event of tenant `acme` whose handling failed.
pub fn incident(world: &World, id: &str) -> String {
    incident_of(world, "acme", id, "billing.invoice.paid", "boom")
}

/// A message that is not ours, in the first shard.
pub fn foreign_incident(world: &World) -> String {
    let incident_id = foreign_id("billing-events", b"hello");
    let foreign = ForeignReport {
        incident_id: incident_id.clone(),
        source_queue: "billing-events".to_owned(),
        error: "not a message of this gateway".to_owned(),
        payload: Some("hello".to_owned()),
        payload_ref: None,
    };
    let statement = report_foreign(&[foreign], world.clock.now()).unwrap();
    block_on(world.shard().port().batch(vec![statement])).unwrap();
    incident_id
}

/// The consumer of a topic handles all that is there; how many messages that were.
pub fn deliver(world: &World, name: &str) -> usize {
    let messages: Vec<Message> = world.take(name);
    for message in &messages {
        let generation = message.generation();
        let shard = world.ledger.shard(world.ledger.shard_of(&message.envelope.tenant_id)).port();
        let now = world.clock.now();
        let leases = block_on(take(shard, std::slice::from_ref(&generation), "consumer", now)).unwrap();
        if leases[&generation] == Lease::Ours {
            block_on(settle(shard, vec![(generation, Outcome::Delivered(Vec::new()))], "consumer", now))
                .unwrap();
        }
    }
    messages.len()
}

pub fn operations(world: &World) -> Operations<'_, Shard> {
    Operations { ledger: &world.ledger }
}

pub fn jobs(world: &World) -> Jobs<'_, Shard> {
    Jobs { ledger: &world.ledger }
}

pub fn replayer(world: &World) -> Replayer<'_, Shard, Flaky<PartlyDown>, ManualClock> {
    Replayer {
        ledger: &world.ledger,
        queues: &world.queues,
        clock: &world.clock,
        in_transit_deadline_ms: IN_TRANSIT_DEADLINE_MS_DEFAULT,
    }
}

/// Something that `ops` does now.
pub fn op<'a>(world: &World, id: &'a str) -> Operation<'a> {
    Operation { id, actor: "ops", note: None, now: world.clock.now() }
}

pub fn view(world: &World, incident_id: &str) -> Incident {
    block_on(operations(world).view(incident_id)).unwrap().incident
}

/// Where incidents and their dispatches stand: `e1 billing.events retrying pending`.
pub fn standing(world: &World) -> Vec<String> {
    let sql = "SELECT i.event_id || ' ' || i.topic || ' ' || i.status || ' ' || d.status AS line FROM dlq_incidents i
                 JOIN event_dispatches d ON d.tenant_id = i.tenant_id AND d.event_id = i.event_id AND d.topic = i.topic
                ORDER BY i.tenant_id, i.event_id, i.topic";
    world.rows(sql).iter().map(|row| row["line"].as_str().unwrap().to_owned()).collect()
}

/// How many rows a `SELECT count(*) AS n` counts in all shards.
pub fn count(world: &World, sql: &'static str) -> u64 {
    world.rows(sql).iter().map(|row| row["n"].as_u64().unwrap()).sum()
}

/// Runs one statement in every shard, past the faults.
pub fn everywhere(world: &World, sql: &'static str) {
    for (_, shard) in world.ledger.shards() {
        block_on(shard.port().batch(vec![Statement::new(sql, Vec::new())])).unwrap();
    }
}
