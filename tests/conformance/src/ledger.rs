//! The domain's own batches, each carried out twice, as happens whenever D1 commits and its answer gets lost. The second
//! time must change nothing and must answer what the first time answered.

use std::cell::RefCell;

use serde_json::json;
use swarm_domain::accept::{Accepted, Acceptor};
use swarm_domain::caller::Caller;
use swarm_domain::claim::{Claimant, claim_named};
use swarm_domain::event::EventInput;
use swarm_domain::lease::{self, Generation, Lease};
use swarm_domain::ledger::{DispatchKey, Ledger};
use swarm_domain::limits::{IN_TRANSIT_DEADLINE_MS_DEFAULT, PAYLOAD_INLINE_BYTES_MAX, SEND_LEASE_MS};
use swarm_domain::message::Body;
use swarm_domain::ports::{BlobError, Blobs, Clock, Outcome, Queues, SendError, Sql, SqlError, Statement};
use swarm_domain::receipt::{Receipt, ReceiptStatus, Recorded};
use swarm_domain::routing::Routes;
use swarm_domain::settle::{Settlement, settle};
use swarm_domain::sweep::{Budget, Sweeper, Swept};
use swarm_domain::time::Timestamp;
use swarm_domain::topic::Topic;

use crate::case::{CaseResult, Check, batch, case, equal, expect_rows, holds, statement};

/// Runs the cases of this file.
pub async fn run<S: Sql>(shard: &S) -> Vec<CaseResult> {
    vec![
        case("an earlier run's rows can be cleared away", clear(shard)).await,
        case("accepting twice is accepting once", accepted(shard)).await,
        case("a duplicate in a batch of its own changes nothing", duplicate(shard)).await,
        case("an inline payload of 64 KiB reaches its claim to the byte", large_payload(shard)).await,
        case("marking enqueued twice is marking once", marked_enqueued(shard)).await,
        case("marking failed twice counts one attempt", marked_failed(shard)).await,
        case("sweeping in batches that run twice is sweeping once", swept(shard)).await,
        case("a dispatch that is given up twice has one incident", abandoned(shard)).await,
        case("claiming by name twice is claiming once", claimed_named(shard)).await,
        case("taking leases twice is taking once", leased(shard)).await,
        case("releasing twice is releasing once", released(shard)).await,
        case("marking delivered twice has its effects once", delivered(shard)).await,
        case("marking dead-lettered twice is marking once", dead_lettered(shard)).await,
        case("the view event_status follows the dispatches", status_view(shard)).await,
    ]
}

const TENANT: &str = "conformance";
const TOPIC: &str = "conformance";
const STATE: [&str; 5] = [
    "SELECT * FROM event_ledger WHERE tenant_id = 'conformance' ORDER BY event_id",
    "SELECT * FROM event_dispatches WHERE tenant_id = 'conformance' ORDER BY event_id, topic",
    "SELECT * FROM conformance ORDER BY id",
    "SELECT * FROM dlq_incidents WHERE tenant_id = 'conformance' ORDER BY incident_id",
    "SELECT * FROM lanes ORDER BY lane",
];

async fn clear<S: Sql>(shard: &S) -> Check {
    let tables = [
        "DELETE FROM event_dispatches WHERE tenant_id = 'conformance'",
        "DELETE FROM event_ledger WHERE tenant_id = 'conformance'",
        "DELETE FROM conformance",
        "DELETE FROM dlq_incidents WHERE tenant_id = 'conformance'",
        "DELETE FROM lanes",
    ];
    batch(shard, tables.into_iter().map(|sql| statement(sql, Vec::new())).collect()).await.map(|_| ())
}

/// A shard that carries out every batch twice and remembers whether the second time changed anything.
struct Twice<'a, S> {
    shard: &'a S,
    drift: RefCell<Vec<String>>,
}

impl<S: Sql> Twice<'_, S> {
    async fn state(&self) -> Result<Vec<String>, SqlError> {
        let statements = STATE.map(|sql| statement(sql, Vec::new())).to_vec();
        Ok(self.shard.batch(statements).await?.into_iter().map(|outcome| outcome.rows).collect())
    }
}

impl<S: Sql> Sql for Twice<'_, S> {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Outcome>, SqlError> {
        self.shard.batch(statements.clone()).await?;
        let first = self.state().await?;
        let answer = self.shard.batch(statements).await;
        let second = self.state().await?;
        if first != second {
            self.drift.borrow_mut().push(format!("{first:?} became {second:?}"));
        }
        answer
    }
}

/// The pieces of a gateway around a shard of which every batch runs twice.
struct Gateway<'a, S>(Ledger<Twice<'a, S>>);

impl<'a, S: Sql> Gateway<'a, S> {
    fn new(shard: &'a S) -> Self {
        Self(Ledger::new(Twice { shard, drift: RefCell::default() }, Vec::new()))
    }

    fn shard(&self) -> &Twice<'a, S> {
        self.0.shard(0)
    }

    async fn accept(&self, id: &str, payload: &str, token: &str) -> Result<Accepted, String> {
        let routes =
            Routes::parse(r#"[{"match":"**","topics":["conformance"]}]"#).map_err(|e| e.to_string())?;
        let caller =
            Caller::parse(r#"{"caller":"suite","tenant":"conformance"}"#).map_err(|e| e.to_string())?;
        let envelope = json!({"id": id, "type": "conformance.checked", "timestamp": "2026-01-01T00:00:00Z"});
        let input = EventInput { envelope: envelope.to_string(), payload: Some(payload.to_owned()) };
        let acceptor = Acceptor { ledger: &self.0, queues: &TakesAll, blobs: &NoBlobs, routes: &routes };
        Ok(acceptor.accept(&caller, vec![input], now(), token).await)
    }

    /// An event whose dispatch is enqueued.
    async fn enqueued(&self, id: &str) -> Result<DispatchKey, String> {
        let accepted = self.accept(id, "{}", id).await?;
        self.settle(accepted.settlements).await?;
        key(id)
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Check {
        settle(&self.0, settlements, now(), IN_TRANSIT_DEADLINE_MS_DEFAULT).await.map_err(|e| e.to_string())
    }

    async fn take(&self, key: &DispatchKey, holder: &str) -> Result<Option<Lease>, String> {
        let first = first(key);
        let leases = lease::take(self.shard(), std::slice::from_ref(&first), holder, now()).await;
        Ok(leases.map_err(|e| e.to_string())?.get(&first).copied())
    }

    async fn finish(&self, key: &DispatchKey, outcome: lease::Outcome, holder: &str) -> Result<(), SqlError> {
        lease::settle(self.shard(), vec![(first(key), outcome)], holder, now()).await
    }

    /// A run of the sweeper when everything is due.
    async fn sweep<Q: Queues>(&self, queues: &Q) -> Swept {
        let late = now().plus_ms(IN_TRANSIT_DEADLINE_MS_DEFAULT);
        let in_transit_deadline_ms = IN_TRANSIT_DEADLINE_MS_DEFAULT;
        let sweeper = Sweeper { ledger: &self.0, queues, clock: &At(late), in_transit_deadline_ms };
        sweeper.sweep("sweep", Budget::new(late.plus_ms(1), 1_000)).await
    }

    /// Ends a case: no batch may have changed anything when it ran again.
    fn stable(&self) -> Check {
        equal("changes by a second run", self.shard().drift.borrow().clone(), Vec::new())
    }
}

fn now() -> Timestamp {
    Timestamp::from_unix_ms(1_767_225_600_000)
}

fn key(id: &str) -> Result<DispatchKey, String> {
    let topic = Topic::try_from(TOPIC.to_owned()).map_err(|e| e.to_string())?;
    Ok(DispatchKey { tenant_id: TENANT.to_owned(), event_id: id.to_owned(), topic })
}

/// The dispatch as its first messages know it.
fn first(key: &DispatchKey) -> Generation {
    Generation { key: key.clone(), replay: 0 }
}

fn recorded(accepted: &Accepted) -> Result<&Recorded, String> {
    match accepted.receipts.first() {
        Some(Receipt::Recorded(recorded)) => Ok(recorded),
        other => Err(format!("saw {other:?}, expected a record")),
    }
}

async fn status<S: Sql>(shard: &S, id: &str, expected: &str) -> Check {
    let sql = "SELECT status FROM event_dispatches WHERE tenant_id = 'conformance' AND event_id = ?1";
    expect_rows(shard, sql, vec![id.into()], json!([{"status": expected}])).await
}

async fn accepted<S: Sql>(shard: &S) -> Check {
    let gateway = Gateway::new(shard);
    let accepted = gateway.accept("accepted", "{}", "accepted").await?;
    equal("status", recorded(&accepted)?.status, ReceiptStatus::Enqueued)?;
    equal("settlements", accepted.settlements.len(), 1)?;
    status(shard, "accepted", "pending").await?;
    gateway.stable()
}

async fn duplicate<S: Sql>(shard: &S) -> Check {
    let gateway = Gateway::new(shard);
    gateway.accept("duplicate", r#"{"n":1}"#, "first").await?;
    let before = gateway.shard().state().await.map_err(|e| e.to_string())?;
    let again = gateway.accept("duplicate", r#"{"n":1.0}"#, "second").await?;
    equal("status", recorded(&again)?.status, ReceiptStatus::DuplicateAcknowledged)?;
    equal("payload matches", recorded(&again)?.payload_matches, Some(false))?;
    equal("settlements", again.settlements.len(), 0)?;
    let after = gateway.shard().state().await.map_err(|e| e.to_string())?;
    holds("the duplicate changed something", before == after)
}

async fn large_payload<S: Sql>(shard: &S) -> Check {
    let gateway = Gateway::new(shard);
    let filler = "é".repeat(PAYLOAD_INLINE_BYTES_MAX / 2 - 10);
    let mut payload = format!(r#"["{filler}",1.0"#);
    payload.push_str(&" ".repeat(PAYLOAD_INLINE_BYTES_MAX - payload.len() - 1));
    payload.push(']');
    equal("length", payload.len(), PAYLOAD_INLINE_BYTES_MAX)?;
    gateway.accept("large", &payload, "large").await?;
    let later = now().plus_ms(SEND_LEASE_MS);
    let claims = claim_named(shard, &Claimant::new("large-claim", later), later, &[key("large")?]).await;
    let claims = claims.map_err(|e| e.to_string())?;
    let body = claims.claimed.first().map(|claimed| &claimed.message.body);
    holds("the payload changed", body == Some(&Body::Inline(payload)))
}

async fn marked_enqueued<S: Sql>(shard: &S) -> Check {
    let gateway = Gateway::new(shard);
    gateway.enqueued("enqueued").await?;
    status(shard, "enqueued", "enqueued").await?;
    gateway.stable()
}

async fn marked_failed<S: Sql>(shard: &S) -> Check {
    let gateway = Gateway::new(shard);
    let mut accepted = gateway.accept("failed", "{}", "failed").await?;
    for settlement in &mut accepted.settlements {
        settlement.result = Err(SendError::Refused("\"down\" \u{0} é".to_owned()));
    }
    gateway.settle(accepted.settlements).await?;
    let sql = "SELECT status, attempts, next_retry_at, last_error FROM event_dispatches
                WHERE tenant_id = 'conformance' AND event_id = 'failed'";
    let row = json!([{
        "status": "failed",
        "attempts": 1,
        "next_retry_at": "2026-01-01 00:02:00.000",
        "last_error": "\"down\" \u{0} é",
    }]);
    expect_rows(shard, sql, Vec::new(), row).await?;
    gateway.stable()
}

async fn swept<S: Sql>(shard: &S) -> Check {
    let gateway = Gateway::new(shard);
    gateway.enqueued("due").await?;
    let swept = gateway.sweep(&TakesAll).await;
    holds(&format!("not all were taken: {swept:?}"), swept.enqueued > 0 && swept.errors.is_empty())?;
    let sql = "SELECT status, attempts, next_retry_at FROM event_dispatches
                WHERE tenant_id = 'conformance' AND event_id = 'due'";
    let row = json!([{"status": "enqueued", "attempts": 0, "next_retry_at": "2026-01-03 00:00:00.000"}]);
    expect_rows(shard, sql, Vec::new(), row).await?;
    expect_rows(shard, "SELECT count(*) AS n FROM lanes", Vec::new(), json!([{"n": 0}])).await?;
    gateway.stable()
}

async fn abandoned<S: Sql>(shard: &S) -> Check {
    let gateway = Gateway::new(shard);
    gateway.enqueued("hopeless").await?;
    let swept = gateway.sweep(&TakesNothing).await;
    holds(&format!("not all were given up: {swept:?}"), swept.abandoned > 0 && swept.errors.is_empty())?;
    status(shard, "hopeless", "dlq_abandoned").await?;
    let sql = "SELECT kind, error_message, source_queue, status, retry_count FROM dlq_incidents
                WHERE tenant_id = 'conformance' AND event_id = 'hopeless'";
    let row = json!([{
        "kind": "abandoned",
        "error_message": "no binding TOPIC_CONFORMANCE for this topic",
        "source_queue": "conformance",
        "status": "open",
        "retry_count": 0,
    }]);
    expect_rows(shard, sql, Vec::new(), row).await?;
    gateway.stable()
}

async fn claimed_named<S: Sql>(shard: &S) -> Check {
    let gateway = Gateway::new(shard);
    gateway.accept("named", "{}", "named").await?;
    let late = now().plus_ms(SEND_LEASE_MS);
    let claims =
        claim_named(gateway.shard(), &Claimant::new("named-claim", late), late, &[key("named")?]).await;
    equal("claims", claims.map_err(|e| e.to_string())?.claimed.len(), 1)?;
    gateway.stable()
}

async fn leased<S: Sql>(shard: &S) -> Check {
    let gateway = Gateway::new(shard);
    let key = gateway.enqueued("leased").await?;
    equal("lease", gateway.take(&key, "one").await?, Some(Lease::Ours))?;
    equal("lease of another", gateway.take(&key, "two").await?, Some(Lease::Held))?;
    gateway.stable()
}

async fn released<S: Sql>(shard: &S) -> Check {
    let gateway = Gateway::new(shard);
    let key = gateway.enqueued("released").await?;
    gateway.take(&key, "one").await?;
    gateway
        .finish(&key, lease::Outcome::Released { error: "later".to_owned(), handled: true }, "one")
        .await
        .map_err(|e| e.to_string())?;
    gateway.stable()?;
    equal("lease of another", gateway.take(&key, "two").await?, Some(Lease::Ours))
}

async fn delivered<S: Sql>(shard: &S) -> Check {
    let gateway = Gateway::new(shard);
    let key = gateway.enqueued("delivered").await?;
    gateway.take(&key, "one").await?;
    let effect =
        "INSERT INTO conformance (id, n) VALUES ('effect', 1) ON CONFLICT (id) DO UPDATE SET n = n + 1";
    let outcome = lease::Outcome::Delivered(vec![statement(effect, Vec::new())]);
    // The repetition finds its lease gone and is undone, effect and all.
    match gateway.finish(&key, outcome, "one").await {
        Err(SqlError::Constraint(_)) => {}
        other => return Err(format!("saw {other:?}, expected a Constraint")),
    }
    status(shard, "delivered", "delivered").await?;
    expect_rows(shard, "SELECT n FROM conformance WHERE id = 'effect'", Vec::new(), json!([{"n": 1}]))
        .await?;
    equal("lease", gateway.take(&key, "one").await?, Some(Lease::AtRest))?;
    gateway.stable()
}

async fn dead_lettered<S: Sql>(shard: &S) -> Check {
    let gateway = Gateway::new(shard);
    let key = gateway.enqueued("dead").await?;
    gateway.take(&key, "one").await?;
    gateway
        .finish(&key, lease::Outcome::DeadLettered("bad".to_owned()), "one")
        .await
        .map_err(|e| e.to_string())?;
    status(shard, "dead", "dead_lettered").await?;
    gateway.stable()
}

async fn status_view<S: Sql>(shard: &S) -> Check {
    let sql = "SELECT event_id, status FROM event_status
                WHERE tenant_id = 'conformance' AND event_id IN ('accepted', 'dead', 'delivered') ORDER BY event_id";
    let rows = json!([
        {"event_id": "accepted", "status": "received"},
        {"event_id": "dead", "status": "dlq"},
        {"event_id": "delivered", "status": "completed"},
    ]);
    expect_rows(shard, sql, Vec::new(), rows).await
}

/// Queues that take everything, because these cases are about the ledger.
struct TakesAll;

impl Queues for TakesAll {
    async fn send(&self, _: &Topic, _: String) -> Result<(), SendError> {
        Ok(())
    }

    async fn send_batch(&self, _: &Topic, _: Vec<String>) -> Result<(), SendError> {
        Ok(())
    }

    async fn send_dead_letter(&self, _: &Topic, _: String) -> Result<(), SendError> {
        Ok(())
    }
}

/// Queues of a Worker that is bound to none.
struct TakesNothing;

impl Queues for TakesNothing {
    async fn send(&self, topic: &Topic, _: String) -> Result<(), SendError> {
        Err(SendError::NoBinding(topic.binding()))
    }

    async fn send_batch(&self, topic: &Topic, _: Vec<String>) -> Result<(), SendError> {
        Err(SendError::NoBinding(topic.binding()))
    }

    async fn send_dead_letter(&self, topic: &Topic, _: String) -> Result<(), SendError> {
        Err(SendError::NoBinding(topic.dead_letter_binding()))
    }
}

/// A clock that has stopped.
struct At(Timestamp);

impl Clock for At {
    fn now(&self) -> Timestamp {
        self.0
    }

    async fn sleep_ms(&self, _: u64) {}
}

/// No payload of these cases is large enough to need a blob.
struct NoBlobs;

impl Blobs for NoBlobs {
    async fn put(&self, key: &str, _: Vec<u8>) -> Result<(), BlobError> {
        Err(BlobError(format!("{key} should have been inline")))
    }

    async fn get(&self, _: &str) -> Result<Option<Vec<u8>>, BlobError> {
        Ok(None)
    }
}
