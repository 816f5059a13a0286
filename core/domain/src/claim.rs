//! Taking dispatches in order to send them: whoever moves `next_retry_at` into the future and signs with `claimed_by` is the
//! only sender until then. A claim that nobody settles simply becomes due again.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;

use crate::event::{Context, Envelope};
use crate::ledger::{DispatchKey, batch_with_retry, json_rows, outcome};
use crate::limits::SEND_LEASE_MS;
use crate::message::{Body, Message};
use crate::ports::{Outcome, Sql, SqlError, Statement};
use crate::states::{DispatchEvent, sql_states_before};
use crate::time::Timestamp;
use crate::topic::Topic;

/// A dispatch that this run may send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// What to send.
    pub message: Message,
    /// Failed sends before this one.
    pub attempts: u32,
}

/// What a claim brought.
#[derive(Debug, Default)]
pub struct Claims {
    /// What may be sent.
    pub claimed: Vec<Claimed>,
    /// Claimed rows that make no message. They hold up nobody, and become due again when their claim ends.
    pub unreadable: Vec<SqlError>,
}

impl Claims {
    /// The rows of a statement that reads claims: the columns of [`READ_NAMED`].
    pub(crate) fn read(rows: &Outcome) -> Result<Self, SqlError> {
        let mut claims = Self::default();
        // Row by row, so that one that somebody has damaged costs no other its turn.
        for row in rows.decode::<Box<RawValue>>()? {
            match Claimed::read(row.get()) {
                Ok(claimed) => claims.claimed.push(claimed),
                Err(problem) => claims.unreadable.push(unreadable(row.get(), &problem)),
            }
        }
        Ok(claims)
    }
}

/// The signature of a run: a random token, and until when its claims hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimant {
    /// Random, unique to the run.
    pub token: String,
    /// From then on others may claim the same dispatches.
    pub until: Timestamp,
}

impl Claimant {
    /// A run that starts now.
    pub fn new(token: impl Into<String>, now: Timestamp) -> Self {
        Self { token: token.into(), until: now.plus_ms(SEND_LEASE_MS) }
    }
}

/// Claims those of the named dispatches that are due and not yet in their queue.
pub static CLAIM_NAMED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE event_dispatches SET next_retry_at = ?1, claimed_by = ?2, updated_at = ?3
          WHERE (tenant_id, event_id, topic) IN (
                SELECT value ->> 'tenant_id', value ->> 'event_id', value ->> 'topic' FROM json_each(?4))
            AND next_retry_at <= ?3 AND status IN ({before}) AND (lease IS NULL OR lease <= ?3)",
        before = sql_states_before(DispatchEvent::Sent),
    )
});

/// Reads which of the named dispatches a run has claimed, with all that a message needs.
pub const READ_NAMED: &str = "
    SELECT d.tenant_id, d.event_id, d.topic, d.attempts, d.replays, d.replay_of,
           l.type, l.occurred_at, l.source, l.subject, l.context, l.payload, l.payload_ref
      FROM json_each(?1) k
      JOIN event_dispatches d ON d.tenant_id = k.value ->> 'tenant_id' AND d.event_id = k.value ->> 'event_id'
                             AND d.topic = k.value ->> 'topic'
      JOIN event_ledger l ON l.tenant_id = d.tenant_id AND l.event_id = d.event_id
     WHERE d.next_retry_at = ?2 AND d.claimed_by = ?3";

#[derive(Deserialize)]
struct ClaimedRow {
    tenant_id: String,
    event_id: String,
    topic: Topic,
    attempts: u32,
    replays: u32,
    replay_of: Option<String>,
    r#type: String,
    occurred_at: Timestamp,
    source: Option<String>,
    subject: Option<String>,
    context: String,
    payload: Option<String>,
    payload_ref: Option<String>,
}

/// Claims the named dispatches of a shard as far as they are due. One round trip.
pub async fn claim_named<S: Sql>(
    shard: &S,
    claimant: &Claimant,
    now: Timestamp,
    keys: &[DispatchKey],
) -> Result<Claims, SqlError> {
    let keys = json_rows(keys)?;
    let values =
        vec![claimant.until.into(), claimant.token.as_str().into(), now.into(), keys.as_str().into()];
    let statements = vec![Statement::new(&CLAIM_NAMED, values), read_named(keys, claimant)];
    let outcomes = batch_with_retry(shard, statements).await?;
    Claims::read(outcome(&outcomes, 1)?)
}

/// Reads a run's own claims among the keys of a JSON array, whose objects may have further fields.
pub(crate) fn read_named(keys: String, claimant: &Claimant) -> Statement {
    let values = vec![keys.into(), claimant.until.into(), claimant.token.as_str().into()];
    Statement::new(READ_NAMED, values)
}

/// Names the row by its key alone: the payload may hold what no log should.
fn unreadable(row: &str, problem: &serde_json::Error) -> SqlError {
    #[derive(Deserialize)]
    struct Key<'a> {
        tenant_id: Cow<'a, str>,
        event_id: Cow<'a, str>,
        topic: Cow<'a, str>,
    }
    let key = serde_json::from_str(row)
        .map(|Key { tenant_id, event_id, topic }| format!("{tenant_id} {event_id} {topic}"));
    SqlError::Failed(format!("the dispatch {} cannot be read: {problem}", key.unwrap_or_default()))
}

impl Claimed {
    /// Reads one row with the columns of [`READ_NAMED`].
    pub(crate) fn read(row: &str) -> Result<Self, serde_json::Error> {
        let row: ClaimedRow = serde_json::from_str(row)?;
        let context: Context = serde_json::from_str(&row.context)?;
        let body = match (row.payload, row.payload_ref) {
            (Some(payload), _) => Body::Inline(payload),
            (None, Some(key)) => Body::Blob(key),
            (None, None) => return Err(serde_json::Error::custom("it has no payload")),
        };
        let envelope = Envelope {
            id: row.event_id,
            tenant_id: row.tenant_id,
            event_type: row.r#type,
            timestamp: row.occurred_at,
            source: row.source,
            subject: row.subject,
            context,
        };
        let message = Message {
            envelope,
            body,
            topic: row.topic,
            replay_of: row.replay_of,
            replay: row.replays,
            attempt: row.attempts + 1,
        };
        Ok(Self { message, attempts: row.attempts })
    }
}
