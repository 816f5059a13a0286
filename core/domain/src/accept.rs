//! Accepting events: check, record, send, answer.
//!
//! One atomic batch per shard writes the event and one dispatch per topic, already claimed by this call, and reads back how
//! things stand; then every topic is sent to at once. That is one round trip to D1 and one round of sends before the
//! answer. The outcomes of the sends are returned as [`Settlement`]s for the caller to write after it has answered.
//!
//! A duplicate writes nothing. Topics that are due and that nobody has claimed are sent again, with the payload that was
//! stored first.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Deserialize;

use crate::caller::Caller;
use crate::claim::{Claimant, Claimed, claim_named};
use crate::event::{EventInput, PlatformEvent};
use crate::join::join_all;
use crate::ledger::{DispatchKey, Ledger, batch_with_retry, json_rows, outcome};
use crate::message::{Body, Message};
use crate::payload::blob_key;
use crate::ports::{Blobs, Outcome, Queues, SendError, Sql, SqlError, Statement, Value};
use crate::receipt::{DispatchReceipt, Receipt, ReceiptStatus, Recorded, Refused};
use crate::routing::Routes;
use crate::settle::Settlement;
use crate::states::DispatchState;
use crate::time::Timestamp;
use crate::topic::Topic;

/// Records an event, unless its identity is taken.
pub const INSERT_EVENT: &str = "
    INSERT INTO event_ledger (tenant_id, event_id, type, occurred_at, source, subject, context,
                              payload, payload_ref, payload_hash, receipt, created_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
    ON CONFLICT (tenant_id, event_id) DO NOTHING";

/// Records the dispatches of those events that this very call recorded. The plus keeps SQLite from peeking at the bound value,
/// for which it would compile the statement anew each time.
pub const INSERT_DISPATCHES: &str = "
    INSERT INTO event_dispatches (tenant_id, event_id, topic, status, next_retry_at, claimed_by, created_at, updated_at)
    SELECT l.tenant_id, l.event_id, k.value ->> 2, 'pending', ?2, l.receipt, l.created_at, l.created_at
      FROM json_each(?1) k
      JOIN event_ledger l ON l.tenant_id = k.value ->> 0 AND l.event_id = k.value ->> 1
     WHERE +l.receipt = ?3
    ON CONFLICT DO NOTHING";

/// Reads how the events of a call stand.
pub const READ_RECORDED: &str = "
    SELECT l.tenant_id, l.event_id, l.receipt, l.payload_hash, d.topic, d.status, d.next_retry_at
      FROM json_each(?1) k
      JOIN event_ledger l ON l.tenant_id = k.value ->> 0 AND l.event_id = k.value ->> 1
      LEFT JOIN event_dispatches d ON d.tenant_id = l.tenant_id AND d.event_id = l.event_id";

/// What accepting needs of the world.
pub struct Acceptor<'a, S, Q, B> {
    /// Where events are recorded.
    pub ledger: &'a Ledger<S>,
    /// Where they are sent.
    pub queues: &'a Q,
    /// Where large payloads go.
    pub blobs: &'a B,
    /// Which topics they go to.
    pub routes: &'a Routes,
}

/// What came of a call.
#[derive(Debug)]
pub struct Accepted {
    /// One answer per event, in order.
    pub receipts: Vec<Receipt>,
    /// What is still to be recorded, after the answer.
    pub settlements: Vec<Settlement>,
}

/// An event that may be recorded.
struct Candidate {
    index: usize,
    event: PlatformEvent,
    payload_hash: String,
    /// Where the blob store keeps the payload, if it is too large for the row.
    payload_ref: Option<String>,
    topics: Vec<Topic>,
}

#[derive(Deserialize)]
struct RecordedRow {
    tenant_id: String,
    event_id: String,
    receipt: String,
    payload_hash: String,
    topic: Option<Topic>,
    status: Option<DispatchState>,
    next_retry_at: Option<Timestamp>,
}

/// The rows of one event, or why there are none.
type Standing = Result<Vec<RecordedRow>, Refused>;

/// The answers of queues, by dispatch, in an order that depends on nothing else.
type Sends = BTreeMap<DispatchKey, Settlement>;

impl<S: Sql, Q: Queues, B: Blobs> Acceptor<'_, S, Q, B> {
    /// Accepts events in order. `token` is random and unique to the call: it tells the call which events it recorded
    /// itself, even when the database's first answer got lost.
    pub async fn accept(
        &self,
        caller: &Caller,
        inputs: Vec<EventInput>,
        now: Timestamp,
        token: &str,
    ) -> Accepted {
        let claimant = Claimant::new(token, now);
        let mut receipts = BTreeMap::new();
        let mut candidates = Vec::new();
        for (index, input) in inputs.into_iter().enumerate() {
            match self.admit(caller, index, input, now) {
                Ok(candidate) => candidates.push(candidate),
                Err(refused) => drop(receipts.insert(index, Receipt::Refused(refused))),
            }
        }
        let candidates = self.store_payloads(candidates, &mut receipts).await;
        let (firsts, repeats) = split_repeats(candidates);
        let events = self.record(firsts, now, &claimant).await;
        let claimed = self.claim(&events, now, &claimant).await;
        let sends = self.send(claimed, &claimant, now).await;
        for (candidate, standing) in &events {
            receipts.insert(candidate.index, receipt(candidate, standing, &claimant, &sends));
        }
        for repeat in repeats {
            let first = events.iter().find(|(candidate, _)| candidate.key() == repeat.key());
            if let Some((candidate, standing)) = first {
                let answer = receipt(candidate, standing, &claimant, &sends);
                receipts.insert(repeat.index, repeated(answer, &repeat, standing));
            }
        }
        Accepted { receipts: receipts.into_values().collect(), settlements: sends.into_values().collect() }
    }

    fn admit(
        &self,
        caller: &Caller,
        index: usize,
        input: EventInput,
        now: Timestamp,
    ) -> Result<Candidate, Refused> {
        let event = PlatformEvent::parse(input, caller.only_tenant())?;
        let topics = self.routes.topics_for(&event.envelope.tenant_id, &event.envelope.event_type);
        caller.authorize(&event.envelope, &topics)?;
        let payload_hash = event.payload.hash();
        let payload_ref = (!event.payload.is_inline()).then(|| blob_key(&payload_hash, now));
        Ok(Candidate { index, payload_hash, payload_ref, event, topics })
    }

    /// Puts large payloads where their rows will point, before the rows exist: a crash in between leaves an object that
    /// nothing refers to, and never a row that points nowhere.
    async fn store_payloads(
        &self,
        candidates: Vec<Candidate>,
        receipts: &mut BTreeMap<usize, Receipt>,
    ) -> Vec<Candidate> {
        let puts = candidates.iter().map(async |candidate| {
            let Some(key) = &candidate.payload_ref else { return Ok(()) };
            let bytes = candidate.event.payload.as_str().as_bytes().to_vec();
            self.blobs.put(key, bytes).await
        });
        let stored = join_all(puts).await;
        let mut kept = Vec::new();
        for (candidate, stored) in candidates.into_iter().zip(stored) {
            match stored {
                Ok(()) => kept.push(candidate),
                Err(error) => {
                    let refused = Refused::unavailable(error.to_string());
                    receipts.insert(candidate.index, Receipt::Refused(refused));
                }
            }
        }
        kept
    }

    async fn record(
        &self,
        candidates: Vec<Candidate>,
        now: Timestamp,
        claimant: &Claimant,
    ) -> Vec<(Candidate, Standing)> {
        let groups = self.ledger.by_shard(candidates, |c| &c.event.envelope.tenant_id);
        let answers = join_all(groups.into_iter().map(async |(shard, candidates)| {
            let standing = record_in_shard(self.ledger.shard(shard), &candidates, now, claimant).await;
            (candidates, standing)
        }));
        answers.await.into_iter().flat_map(|(candidates, standing)| standings(candidates, standing)).collect()
    }

    /// What this call may send: everything it has just recorded, and of duplicates what is due. Only a duplicate with
    /// something due costs a further round trip. If that fails, the sweeper will do it.
    async fn claim(
        &self,
        events: &[(Candidate, Standing)],
        now: Timestamp,
        claimant: &Claimant,
    ) -> Vec<Claimed> {
        let (mut claimed, mut due) = (Vec::new(), BTreeSet::new());
        for (candidate, rows) in events.iter().filter_map(|(c, s)| Some((c, s.as_ref().ok()?))) {
            if is_first(rows, claimant) {
                claimed.extend(candidate.topics.iter().map(|topic| candidate.claimed(topic)));
            } else {
                due.extend(rows.iter().filter_map(|row| row.due_key(now)));
            }
        }
        let due = self.ledger.by_shard(due, |key| &key.tenant_id);
        let further = join_all(due.into_iter().map(async |(shard, keys)| {
            claim_named(self.ledger.shard(shard), claimant, now, &keys).await.unwrap_or_default()
        }));
        claimed.extend(further.await.into_iter().flat_map(|claims| claims.claimed));
        claimed
    }

    async fn send(&self, claimed: Vec<Claimed>, claimant: &Claimant, now: Timestamp) -> Sends {
        let sends = claimed.iter().map(async |claimed| {
            let result = match claimed.message.encode() {
                Ok(text) => self.queues.send(&claimed.message.topic, text).await,
                Err(error) => Err(SendError::Refused(error.to_string())),
            };
            let settlement = Settlement::new(claimed, &claimant.token, result, now);
            (settlement.key.clone(), settlement)
        });
        join_all(sends).await.into_iter().collect()
    }
}

impl Candidate {
    fn key(&self) -> (&str, &str) {
        (&self.event.envelope.tenant_id, &self.event.envelope.id)
    }

    /// The dispatch to one topic, as this call has just recorded it.
    fn claimed(&self, topic: &Topic) -> Claimed {
        let body = match &self.payload_ref {
            None => Body::Inline(self.event.payload.as_str().to_owned()),
            Some(key) => Body::Blob(key.clone()),
        };
        let envelope = self.event.envelope.clone();
        let message =
            Message { envelope, body, topic: topic.clone(), replay_of: None, replay: 0, attempt: 1 };
        Claimed { message, attempts: 0 }
    }
}

impl RecordedRow {
    /// The dispatch of this row, if it is not in its queue yet and nobody is about to send it.
    fn due_key(&self, now: Timestamp) -> Option<DispatchKey> {
        let waiting = matches!(self.status?, DispatchState::Pending | DispatchState::Failed);
        (waiting && self.next_retry_at? <= now).then(|| self.key())?
    }

    fn key(&self) -> Option<DispatchKey> {
        Some(DispatchKey {
            tenant_id: self.tenant_id.clone(),
            event_id: self.event_id.clone(),
            topic: self.topic.clone()?,
        })
    }
}

async fn record_in_shard<S: Sql>(
    shard: &S,
    candidates: &[Candidate],
    now: Timestamp,
    claimant: &Claimant,
) -> Result<Vec<RecordedRow>, SqlError> {
    let mut statements = Vec::with_capacity(candidates.len() + 2);
    for candidate in candidates {
        statements.push(insert_event(candidate, now, claimant)?);
    }
    statements.extend(insert_dispatches(candidates, claimant)?);
    let keys: Vec<_> = candidates.iter().map(Candidate::key).collect();
    statements.push(Statement::new(READ_RECORDED, vec![json_rows(&keys)?.into()]));
    let last = statements.len() - 1;
    let outcomes: Vec<Outcome> = batch_with_retry(shard, statements).await?;
    outcome(&outcomes, last)?.decode()
}

fn insert_event(candidate: &Candidate, now: Timestamp, claimant: &Claimant) -> Result<Statement, SqlError> {
    let envelope = &candidate.event.envelope;
    let context = serde_json::to_string(&envelope.context).map_err(|e| SqlError::Failed(e.to_string()))?;
    let (payload, payload_ref) = match &candidate.payload_ref {
        None => (candidate.event.payload.as_str().into(), Value::Null),
        Some(key) => (Value::Null, key.as_str().into()),
    };
    let values = vec![
        envelope.tenant_id.as_str().into(),
        envelope.id.as_str().into(),
        envelope.event_type.as_str().into(),
        envelope.timestamp.into(),
        envelope.source.as_deref().into(),
        envelope.subject.as_deref().into(),
        context.into(),
        payload,
        payload_ref,
        candidate.payload_hash.as_str().into(),
        claimant.token.as_str().into(),
        now.into(),
    ];
    Ok(Statement::new(INSERT_EVENT, values))
}

/// All dispatches of the call in one statement; none if no route matched.
fn insert_dispatches(candidates: &[Candidate], claimant: &Claimant) -> Result<Option<Statement>, SqlError> {
    let dispatches = candidates.iter().flat_map(|candidate| {
        let (tenant_id, event_id) = candidate.key();
        candidate.topics.iter().map(move |topic| (tenant_id, event_id, topic))
    });
    let rows: Vec<_> = dispatches.collect();
    if rows.is_empty() {
        return Ok(None);
    }
    let values = vec![json_rows(&rows)?.into(), claimant.until.into(), claimant.token.as_str().into()];
    Ok(Some(Statement::new(INSERT_DISPATCHES, values)))
}

/// Gives each candidate the rows that are its own.
fn standings(
    candidates: Vec<Candidate>,
    answer: Result<Vec<RecordedRow>, SqlError>,
) -> Vec<(Candidate, Standing)> {
    let refused = |error: &SqlError| Refused::unavailable(error.to_string());
    let rows = match answer {
        Ok(rows) => rows,
        Err(error) => return candidates.into_iter().map(|c| (c, Err(refused(&error)))).collect(),
    };
    let mut by_event: HashMap<(String, String), Vec<RecordedRow>> = HashMap::new();
    for row in rows {
        by_event.entry((row.tenant_id.clone(), row.event_id.clone())).or_default().push(row);
    }
    let mut standing = |candidate: Candidate| {
        let (tenant_id, event_id) = candidate.key();
        match by_event.remove(&(tenant_id.to_owned(), event_id.to_owned())) {
            Some(rows) => (candidate, Ok(rows)),
            None => (candidate, Err(Refused::unavailable("the ledger does not show the event"))),
        }
    };
    candidates.into_iter().map(&mut standing).collect()
}

/// Sets apart events whose identity another event of the same call has already; they are its duplicates.
fn split_repeats(candidates: Vec<Candidate>) -> (Vec<Candidate>, Vec<Candidate>) {
    let mut seen = HashSet::new();
    candidates.into_iter().partition(|candidate| {
        let (tenant_id, event_id) = candidate.key();
        seen.insert((tenant_id.to_owned(), event_id.to_owned()))
    })
}

fn receipt(candidate: &Candidate, standing: &Standing, claimant: &Claimant, sends: &Sends) -> Receipt {
    let rows = match standing {
        Ok(rows) => rows,
        Err(refused) => return Receipt::Refused(refused.clone()),
    };
    let first = is_first(rows, claimant);
    let dispatches: Vec<_> = rows.iter().filter_map(|row| dispatch_receipt(row, sends)).collect();
    let status = if !first {
        ReceiptStatus::DuplicateAcknowledged
    } else if dispatches.is_empty() {
        ReceiptStatus::Undelivered
    } else if dispatches.iter().all(|d| d.status == DispatchState::Enqueued) {
        ReceiptStatus::Enqueued
    } else {
        ReceiptStatus::Accepted
    };
    Receipt::Recorded(Recorded {
        status,
        event_id: candidate.event.envelope.id.clone(),
        payload_matches: (!first).then(|| brings_stored_payload(candidate, rows)),
        dispatches,
    })
}

/// The answer to an event that repeats another of the same call.
fn repeated(first: Receipt, repeat: &Candidate, standing: &Standing) -> Receipt {
    match (first, standing) {
        (Receipt::Recorded(recorded), Ok(rows)) => Receipt::Recorded(Recorded {
            status: ReceiptStatus::DuplicateAcknowledged,
            payload_matches: Some(brings_stored_payload(repeat, rows)),
            ..recorded
        }),
        (refused, _) => refused,
    }
}

fn brings_stored_payload(candidate: &Candidate, rows: &[RecordedRow]) -> bool {
    rows.iter().all(|row| row.payload_hash == candidate.payload_hash)
}

fn dispatch_receipt(row: &RecordedRow, sends: &Sends) -> Option<DispatchReceipt> {
    let (status, next_retry_at) = match sends.get(&row.key()?) {
        Some(Settlement { result: Ok(()), .. }) => (DispatchState::Enqueued, None),
        Some(failed) => (DispatchState::Failed, Some(failed.next_retry_at())),
        None => (row.status?, row.next_retry_at),
    };
    let waiting = matches!(status, DispatchState::Pending | DispatchState::Failed);
    let next_retry_at = next_retry_at.filter(|_| waiting).map(Timestamp::rfc3339);
    Some(DispatchReceipt { topic: row.topic.clone()?, status, next_retry_at })
}

fn is_first(rows: &[RecordedRow], claimant: &Claimant) -> bool {
    rows.iter().all(|row| row.receipt == claimant.token)
}
