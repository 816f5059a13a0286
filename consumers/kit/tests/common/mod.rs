//! A topic with its ledger, queues and blobs on the native ports, and a handler that does what the test has written down.
#![allow(dead_code, reason = "every test binary uses another part of it")]

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};

use serde_json::Value as Json;
use swarm_consumer_kit::{
    Consumer, Delivery, Disposition, End, Failure, Handled, Handler, Incoming, Verdict,
};
use swarm_domain::accept::Acceptor;
use swarm_domain::caller::Caller;
use swarm_domain::event::EventInput;
use swarm_domain::ledger::Ledger;
use swarm_domain::limits::IN_TRANSIT_DEADLINE_MS_DEFAULT;
use swarm_domain::message::DeadLetter;
use swarm_domain::ports::{Clock, Sql, Statement};
use swarm_domain::routing::Routes;
use swarm_domain::settle::settle;
use swarm_domain::time::Timestamp;
use swarm_domain::topic::Topic;
use swarm_native::{Flaky, ManualClock, MemoryBlobs, MemoryQueues, SqliteShard, block_on};

pub const MAX_RETRIES: u32 = 5;
const START_MS: i64 = 1_767_225_600_000;

pub fn topic(name: &str) -> Topic {
    Topic::try_from(name.to_owned()).unwrap()
}

pub struct World {
    pub ledger: Ledger<Flaky<SqliteShard>>,
    pub queues: Flaky<MemoryQueues>,
    pub blobs: Flaky<MemoryBlobs>,
    pub clock: ManualClock,
    pub topic: Topic,
    tokens: Cell<u32>,
}

impl World {
    pub fn new(shards: usize) -> Self {
        let shard = || Flaky::new(SqliteShard::migrated().unwrap());
        Self {
            ledger: Ledger::new(shard(), (1..shards).map(|_| shard()).collect()),
            queues: Flaky::new(MemoryQueues::new([topic("billing.events"), topic("audit.events")])),
            blobs: Flaky::new(MemoryBlobs::new()),
            clock: ManualClock::new(Timestamp::from_unix_ms(START_MS)),
            topic: topic("billing.events"),
            tokens: Cell::new(0),
        }
    }

    /// A world whose topic has one event for each id, and their messages.
    pub fn with_events(ids: &[&str]) -> (Self, Vec<Incoming>) {
        let world = Self::new(1);
        for id in ids {
            world.publish("acme", id, "{}");
        }
        let messages = world.take_messages();
        (world, messages)
    }

    pub fn token(&self) -> String {
        self.tokens.set(self.tokens.get() + 1);
        format!("token-{}", self.tokens.get())
    }

    /// The only shard, or the first.
    pub fn shard(&self) -> &Flaky<SqliteShard> {
        self.ledger.shard(0)
    }

    pub fn publish(&self, tenant: &str, id: &str, payload: &str) {
        let envelope = format!(
            r#"{{"id":"{id}","tenantId":"{tenant}","type":"billing.paid","timestamp":"2026-01-01T00:00:00Z"}}"#
        );
        let routes = Routes::parse(r#"[{"match":"billing.**","topics":["billing.events"]}]"#).unwrap();
        let acceptor =
            Acceptor { ledger: &self.ledger, queues: &self.queues, blobs: &self.blobs, routes: &routes };
        let caller = Caller::parse(r#"{"caller":"test","tenants":["*"]}"#).unwrap();
        let input = EventInput { envelope, payload: Some(payload.to_owned()) };
        block_on(async {
            let accepted = acceptor.accept(&caller, vec![input], self.clock.now(), &self.token()).await;
            let deadline = IN_TRANSIT_DEADLINE_MS_DEFAULT;
            settle(&self.ledger, accepted.settlements, self.clock.now(), deadline).await.unwrap();
        });
    }

    /// Moves a dispatch of the first shard as an operator's repetition does.
    pub fn repeat(&self, id: &str) {
        let sql =
            "UPDATE event_dispatches SET status = 'pending', replays = replays + 1, starts = 0, lease = NULL,
                          lease_holder = NULL, next_retry_at = ?2 WHERE event_id = ?1";
        let statement = Statement::new(sql, vec![id.into(), self.clock.now().into()]);
        block_on(self.shard().port().batch(vec![statement])).unwrap();
    }

    pub fn take_messages(&self) -> Vec<Incoming> {
        let texts = self.queues.port().take(&self.topic);
        texts.into_iter().map(|text| Incoming { text, attempts: 1 }).collect()
    }

    pub async fn consume_with<H: Handler>(&self, handler: &H, messages: &[Incoming]) -> Vec<Verdict> {
        let consumer = Consumer {
            ledger: &self.ledger,
            queues: &self.queues,
            blobs: &self.blobs,
            clock: &self.clock,
            handler,
            topic: &self.topic,
            max_retries: MAX_RETRIES,
        };
        let verdicts = consumer.consume(messages.to_vec(), &self.token()).await;
        assert_eq!(verdicts.len(), messages.len());
        verdicts
    }

    pub fn consume<H: Handler>(&self, handler: &H, messages: &[Incoming]) -> Vec<Verdict> {
        block_on(self.consume_with(handler, messages))
    }

    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        let texts = self.queues.port().take_dead_letters(&self.topic);
        texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
    }

    /// Rows of all shards, past faults and counts.
    pub fn rows(&self, sql: &'static str) -> Vec<Json> {
        self.ledger.shards().flat_map(|(_, shard)| rows(shard.port(), sql)).collect()
    }

    /// Lines such as `e1 delivered`, with the lease's holder and the last error if there are any.
    pub fn dispatches(&self) -> Vec<String> {
        let rows = self.rows(
            "SELECT event_id || ' ' || status || coalesce(' held by ' || lease_holder, '') ||
                    coalesce(': ' || last_error, '') AS line
               FROM event_dispatches ORDER BY event_id",
        );
        rows.iter().map(|row| row["line"].as_str().unwrap().to_owned()).collect()
    }

    /// How often the effect of each event happened: `e1 1`.
    pub fn effects(&self) -> Vec<String> {
        let sql =
            "SELECT invoice_id || ' ' || payments AS line FROM billing_invoices_paid ORDER BY invoice_id";
        self.rows(sql).iter().map(|row| row["line"].as_str().unwrap().to_owned()).collect()
    }

    pub fn calls(&self) -> Vec<usize> {
        self.ledger.shards().map(|(_, shard)| shard.calls()).collect()
    }
}

fn rows<S: Sql>(shard: &S, sql: &'static str) -> Vec<Json> {
    block_on(shard.batch(vec![Statement::new(sql, Vec::new())])).unwrap().remove(0).decode().unwrap()
}

/// An effect that would show if it happened twice.
pub fn effect(delivery: &Delivery) -> Statement {
    let sql = "INSERT INTO billing_invoices_paid VALUES (?1, ?2, 1, 'eur', 1, ?2, ?3)
               ON CONFLICT (tenant_id, invoice_id) DO UPDATE SET payments = payments + 1";
    let envelope = &delivery.envelope;
    let values =
        vec![envelope.tenant_id.as_str().into(), envelope.id.as_str().into(), envelope.timestamp.into()];
    Statement::new(sql, values)
}

/// A handler with one effect per message, after as many failures as were written down for its event.
#[derive(Default)]
pub struct Script {
    failures: RefCell<HashMap<String, VecDeque<Failure>>>,
    pub seen: RefCell<Vec<Delivery>>,
}

impl Script {
    pub fn failing(id: &str, failures: impl IntoIterator<Item = Failure>) -> Self {
        let failures = HashMap::from([(id.to_owned(), failures.into_iter().collect())]);
        Self { failures: RefCell::new(failures), seen: RefCell::default() }
    }

    pub fn seen_ids(&self) -> Vec<String> {
        self.seen.borrow().iter().map(|delivery| delivery.envelope.id.clone()).collect()
    }
}

impl Handler for Script {
    async fn handle(&self, delivery: &Delivery) -> Result<Handled, Failure> {
        self.seen.borrow_mut().push(delivery.clone());
        let failure = self.failures.borrow_mut().get_mut(&delivery.envelope.id).and_then(VecDeque::pop_front);
        failure.map_or_else(|| Ok(Handled::with_effects(vec![effect(delivery)])), Err)
    }
}

pub fn again(messages: &[Incoming]) -> Vec<Incoming> {
    messages.iter().map(|m| Incoming { text: m.text.clone(), attempts: m.attempts + 1 }).collect()
}

pub fn last_attempt(messages: &[Incoming]) -> Vec<Incoming> {
    messages.iter().map(|m| Incoming { text: m.text.clone(), attempts: MAX_RETRIES + 1 }).collect()
}

pub fn ends(verdicts: &[Verdict]) -> Vec<&End> {
    verdicts.iter().map(|verdict| &verdict.end).collect()
}

pub fn acked(verdicts: &[Verdict]) -> bool {
    verdicts.iter().all(|verdict| verdict.disposition == Disposition::Ack)
}

pub fn retried(verdicts: &[Verdict], seconds: u32) -> bool {
    let retry = Disposition::Retry { delay_seconds: seconds };
    verdicts.iter().all(|verdict| verdict.disposition == retry)
}
