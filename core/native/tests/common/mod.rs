//! A small gateway on the native ports: shards, queues, blobs and a clock that the tests hold in their hands.

#![allow(dead_code, reason = "every test binary uses another part of it")]

pub mod operators;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::LazyLock;

use serde_json::Value as Json;
use swarm_domain::accept::{Accepted, Acceptor};
use swarm_domain::caller::Caller;
use swarm_domain::event::EventInput;
use swarm_domain::lease::Generation;
use swarm_domain::ledger::{DispatchKey, Ledger};
use swarm_domain::limits::IN_TRANSIT_DEADLINE_MS_DEFAULT;
use swarm_domain::message::Message;
use swarm_domain::ports::{Clock, Queues, SendError, Sql, Statement, Value};
use swarm_domain::receipt::{Receipt, Recorded, Refused};
use swarm_domain::routing::Routes;
use swarm_domain::settle::settle;
use swarm_domain::sweep::{Budget, Sweeper, Swept};
use swarm_domain::time::Timestamp;
use swarm_domain::topic::Topic;
use swarm_native::{Fault, Flaky, ManualClock, MemoryBlobs, MemoryQueues, SqliteShard, block_on};

/// 2026-01-01, when every test begins.
pub const START_MS: i64 = 1_767_225_600_000;
pub const MINUTE_MS: i64 = 60_000;
/// More calls than any run of a test needs.
pub const CALLS: usize = 1_000_000;

const ROUTES: &str = r#"[
    {"match": "billing.**", "topics": ["billing.events"]},
    {"match": "shop.**", "topics": ["billing.events", "audit.events"]},
    {"match": "lost.**", "topics": ["unbound.events", "audit.events"]}
]"#;

pub fn topic(name: &str) -> Topic {
    Topic::try_from(name.to_owned()).unwrap()
}

/// What is wrong with a queue.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// Every send fails like this.
    Fails(SendError),
    /// Batches that hold this text fail like this.
    Dislikes(&'static str, SendError),
    /// No send is ever answered.
    Hangs,
}

/// Queues of which some are in trouble for a while.
#[derive(Clone)]
pub struct PartlyDown {
    pub queues: MemoryQueues,
    pub troubles: Rc<RefCell<BTreeMap<Topic, Trouble>>>,
}

impl PartlyDown {
    async fn check(&self, topic: &Topic, messages: &[String]) -> Result<(), SendError> {
        let trouble = self.troubles.borrow().get(topic).cloned();
        match trouble {
            Some(Trouble::Fails(error)) => Err(error),
            Some(Trouble::Dislikes(text, error)) if messages.iter().any(|m| m.contains(text)) => Err(error),
            Some(Trouble::Hangs) => std::future::pending().await,
            Some(Trouble::Dislikes(..)) | None => Ok(()),
        }
    }
}

impl Queues for PartlyDown {
    async fn send(&self, topic: &Topic, message: String) -> Result<(), SendError> {
        self.check(topic, std::slice::from_ref(&message)).await?;
        self.queues.send(topic, message).await
    }

    async fn send_batch(&self, topic: &Topic, messages: Vec<String>) -> Result<(), SendError> {
        self.check(topic, &messages).await?;
        self.queues.send_batch(topic, messages).await
    }

    async fn send_dead_letter(&self, topic: &Topic, message: String) -> Result<(), SendError> {
        self.check(topic, std::slice::from_ref(&message)).await?;
        self.queues.send_dead_letter(topic, message).await
    }
}

pub type Shard = Flaky<SqliteShard>;

/// Everything that the gateway touches.
pub struct World {
    pub ledger: Ledger<Shard>,
    pub queues: Flaky<PartlyDown>,
    pub blobs: Flaky<MemoryBlobs>,
    pub clock: ManualClock,
    pub routes: Routes,
    tokens: Cell<u32>,
}

impl World {
    pub fn new(shards: usize) -> Self {
        let shard = || Flaky::new(SqliteShard::migrated().unwrap());
        let queues = MemoryQueues::new([topic("billing.events"), topic("audit.events")]);
        Self {
            ledger: Ledger::new(shard(), (1..shards).map(|_| shard()).collect()),
            queues: Flaky::new(PartlyDown { queues, troubles: Rc::default() }),
            blobs: Flaky::new(MemoryBlobs::new()),
            clock: ManualClock::new(Timestamp::from_unix_ms(START_MS)),
            routes: Routes::parse(ROUTES).unwrap(),
            tokens: Cell::new(0),
        }
    }

    /// The only shard, or the first.
    pub fn shard(&self) -> &Shard {
        self.ledger.shard(0)
    }

    pub fn token(&self) -> String {
        self.tokens.set(self.tokens.get() + 1);
        format!("token-{}", self.tokens.get())
    }

    /// Accepts events; what came of the sends is not recorded yet, as if the isolate had ended after the answer.
    pub async fn accept(&self, events: Vec<EventInput>) -> Accepted {
        let acceptor =
            Acceptor { ledger: &self.ledger, queues: &self.queues, blobs: &self.blobs, routes: &self.routes };
        let caller = Caller::parse(r#"{"caller":"test","tenants":["*"]}"#).unwrap();
        acceptor.accept(&caller, events, self.clock.now(), &self.token()).await
    }

    /// Accepts one event without recording what came of its sends.
    pub fn accept_one(&self, event: EventInput) -> Receipt {
        block_on(self.accept(vec![event])).receipts.remove(0)
    }

    /// Accepts events and records what came of the sends.
    pub async fn publish_all(&self, events: Vec<EventInput>) -> Vec<Receipt> {
        let accepted = self.accept(events).await;
        let now = self.clock.now();
        // A settlement that gets lost is a case the gateway must live with, so its error is no failure of the test.
        let _ = settle(&self.ledger, accepted.settlements, now, IN_TRANSIT_DEADLINE_MS_DEFAULT).await;
        accepted.receipts
    }

    pub fn publish(&self, event: EventInput) -> Receipt {
        block_on(self.publish_all(vec![event])).remove(0)
    }

    pub async fn sweep_with(&self, token: &str) -> Swept {
        let budget = Budget::new(self.clock.now().plus_ms(MINUTE_MS), CALLS);
        self.sweep_within(token, budget).await
    }

    pub async fn sweep_within(&self, token: &str, budget: Budget) -> Swept {
        let sweeper = Sweeper {
            ledger: &self.ledger,
            queues: &self.queues,
            clock: &self.clock,
            in_transit_deadline_ms: IN_TRANSIT_DEADLINE_MS_DEFAULT,
        };
        sweeper.sweep(token, budget).await
    }

    pub fn sweep(&self) -> Swept {
        block_on(self.sweep_with(&self.token()))
    }

    /// Takes what a topic's queue holds.
    pub fn take(&self, name: &str) -> Vec<Message> {
        let texts = self.queues.port().queues.take(&topic(name));
        texts.iter().map(|text| Message::decode(text).unwrap()).collect()
    }

    pub fn waiting(&self, name: &str) -> usize {
        self.queues.port().queues.waiting(&topic(name))
    }

    pub fn set_down(&self, name: &str, down: bool) {
        let error = SendError::Refused("queue is down".to_owned());
        self.trouble(name, down.then_some(Trouble::Fails(error)));
    }

    pub fn trouble(&self, name: &str, trouble: Option<Trouble>) {
        let mut troubles = self.queues.port().troubles.borrow_mut();
        match trouble {
            Some(trouble) => troubles.insert(topic(name), trouble),
            None => troubles.remove(&topic(name)),
        };
    }

    /// Moves a dispatch as an operator's repetition does, in the first shard.
    pub fn repeat(&self, id: &str, name: &str) {
        let sql = "UPDATE event_dispatches SET status = 'pending', replays = replays + 1, attempts = 0, starts = 0,
                          lease = NULL, lease_holder = NULL, claimed_by = NULL, last_error = NULL, next_retry_at = ?3
                    WHERE event_id = ?1 AND topic = ?2";
        run(self.shard().port(), sql, vec![id.into(), name.into(), self.clock.now().into()]);
    }

    /// Rows of all shards, past the fault injection.
    pub fn rows(&self, sql: &'static str) -> Vec<Json> {
        self.ledger.shards().flat_map(|(_, shard)| rows(shard.port(), sql)).collect()
    }

    /// The `status` of every dispatch, by event and topic: `e1 audit.events pending`.
    pub fn dispatches(&self) -> Vec<String> {
        let rows =
            self.rows("SELECT event_id || ' ' || topic || ' ' || status AS line FROM event_dispatches");
        let mut lines: Vec<String> =
            rows.iter().map(|row| row["line"].as_str().unwrap().to_owned()).collect();
        lines.sort();
        lines
    }
}

/// Accepts events of which no queue takes any, as if the isolate had ended before it sent them.
pub fn fail_all_sends(world: &World, events: impl IntoIterator<Item = EventInput>) {
    world.queues.fail_always(Fault::Refused);
    events.into_iter().for_each(|event| drop(world.accept_one(event)));
    world.queues.heal();
}

/// Dispatches to a topic that are due now: events `e00001`, `e00002`, … of tenant `acme`, each with a topic or two.
pub fn strand(world: &World, name: &str, count: usize) {
    const NUMBERS: &str = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)";
    static EVENTS: LazyLock<String> = LazyLock::new(|| {
        format!(
            "{NUMBERS} INSERT INTO event_ledger (tenant_id, event_id, type, occurred_at, payload, payload_hash, receipt, created_at)
             SELECT 'acme', printf('e%05d', n), 'billing.invoice.paid', ?2, '{{}}', '', 'stranded', ?2 FROM n WHERE true
             ON CONFLICT DO NOTHING"
        )
    });
    static DISPATCHES: LazyLock<String> = LazyLock::new(|| {
        format!(
            "{NUMBERS} INSERT INTO event_dispatches (tenant_id, event_id, topic, status, next_retry_at, created_at, updated_at)
             SELECT 'acme', printf('e%05d', n), ?3, 'pending', ?2, ?2, ?2 FROM n"
        )
    });
    let now = world.clock.now();
    let count = Value::from(count as i64);
    run(world.shard().port(), &EVENTS, vec![count.clone(), now.into()]);
    run(world.shard().port(), &DISPATCHES, vec![count, now.into(), name.into()]);
}

/// Every incident: `e1 billing.events abandoned billing-events 0: why`, the number being its generation.
pub fn incidents(world: &World) -> Vec<String> {
    let sql =
        "SELECT event_id || ' ' || topic || ' ' || kind || ' ' || source_queue || ' ' || generation || ': '
                      || error_message AS line FROM dlq_incidents ORDER BY event_id, topic";
    world.rows(sql).iter().map(|row| row["line"].as_str().unwrap().to_owned()).collect()
}

/// Rows of one statement.
pub fn rows<S: Sql>(shard: &S, sql: &'static str) -> Vec<Json> {
    run(shard, sql, Vec::new())
}

/// Runs one statement and answers its rows.
pub fn run<S: Sql>(shard: &S, sql: &'static str, values: Vec<Value>) -> Vec<Json> {
    block_on(shard.batch(vec![Statement::new(sql, values)])).unwrap().remove(0).decode().unwrap()
}

/// An event of tenant `acme`.
pub fn event(id: &str, event_type: &str) -> EventInput {
    event_of("acme", id, event_type, "{}")
}

pub fn event_of(tenant: &str, id: &str, event_type: &str, payload: &str) -> EventInput {
    let envelope = format!(
        r#"{{"id":"{id}","tenantId":"{tenant}","type":"{event_type}","timestamp":"2026-01-01T00:00:00Z","source":"test"}}"#
    );
    EventInput { envelope, payload: Some(payload.to_owned()) }
}

pub fn key(id: &str, name: &str) -> DispatchKey {
    DispatchKey { tenant_id: "acme".to_owned(), event_id: id.to_owned(), topic: topic(name) }
}

/// A dispatch of tenant `acme` that operators have had repeated so often.
pub fn generation(id: &str, name: &str, replay: u32) -> Generation {
    Generation { key: key(id, name), replay }
}

pub fn recorded(receipt: &Receipt) -> &Recorded {
    match receipt {
        Receipt::Recorded(recorded) => recorded,
        Receipt::Refused(refused) => panic!("refused: {refused:?}"),
    }
}

pub fn refused(receipt: &Receipt) -> &Refused {
    match receipt {
        Receipt::Refused(refused) => refused,
        Receipt::Recorded(recorded) => panic!("recorded: {recorded:?}"),
    }
}
