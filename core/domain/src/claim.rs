//! Taking dispatches in order to send them: whoever moves `next_retry_at` into the future and signs with `claimed_by` is the
//! only sender until then. A claim that nobody settles simply becomes due again.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::event::{Context, Envelope};
use crate::ledger::{DispatchKey, batch_with_retry, json_rows, outcome};
use crate::limits::SEND_LEASE_MS;
use crate::message::{Body, Message};
use crate::ports::{Sql, SqlError, Statement};
use crate::states::{DispatchEvent, sql_state_after, sql_states_before};
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

/// Claims what is due, oldest first, whatever its topic.
pub static CLAIM_DUE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE event_dispatches SET status = {after}, next_retry_at = ?1, claimed_by = ?2, updated_at = ?3
          WHERE (tenant_id, event_id, topic) IN (
                SELECT tenant_id, event_id, topic FROM event_dispatches
                 WHERE next_retry_at <= ?3 AND status IN ({before}) AND (lease IS NULL OR lease <= ?3)
                 ORDER BY next_retry_at LIMIT ?4)",
        after = sql_state_after(DispatchEvent::Claim),
        before = sql_states_before(DispatchEvent::Claim),
    )
});

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

/// Reads what a run has claimed, with all that a message needs.
pub const READ_CLAIMED: &str = "
    SELECT d.tenant_id, d.event_id, d.topic, d.attempts, d.replay_of,
           l.type, l.occurred_at, l.source, l.subject, l.context, l.payload, l.payload_ref
      FROM event_dispatches d
      JOIN event_ledger l ON l.tenant_id = d.tenant_id AND l.event_id = d.event_id
     WHERE d.next_retry_at = ?1 AND d.claimed_by = ?2";

#[derive(Deserialize)]
struct ClaimedRow {
    tenant_id: String,
    event_id: String,
    topic: Topic,
    attempts: u32,
    replay_of: Option<String>,
    r#type: String,
    occurred_at: Timestamp,
    source: Option<String>,
    subject: Option<String>,
    context: String,
    payload: Option<String>,
    payload_ref: Option<String>,
}

/// Claims up to `limit` due dispatches of a shard. One round trip.
pub async fn claim_due<S: Sql>(
    shard: &S,
    claimant: &Claimant,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Claimed>, SqlError> {
    let values = vec![
        claimant.until.into(),
        claimant.token.as_str().into(),
        now.into(),
        i64::try_from(limit).unwrap_or(i64::MAX).into(),
    ];
    claim(shard, claimant, Statement::new(&CLAIM_DUE, values)).await
}

/// Claims the named dispatches of a shard as far as they are due. One round trip.
pub async fn claim_named<S: Sql>(
    shard: &S,
    claimant: &Claimant,
    now: Timestamp,
    keys: &[DispatchKey],
) -> Result<Vec<Claimed>, SqlError> {
    let values =
        vec![claimant.until.into(), claimant.token.as_str().into(), now.into(), json_rows(keys)?.into()];
    claim(shard, claimant, Statement::new(&CLAIM_NAMED, values)).await
}

async fn claim<S: Sql>(
    shard: &S,
    claimant: &Claimant,
    update: Statement,
) -> Result<Vec<Claimed>, SqlError> {
    let read =
        Statement::new(READ_CLAIMED, vec![claimant.until.into(), claimant.token.as_str().into()]);
    let outcomes = batch_with_retry(shard, vec![update, read]).await?;
    outcome(&outcomes, 1)?.decode::<ClaimedRow>()?.into_iter().map(Claimed::from_row).collect()
}

impl Claimed {
    fn from_row(row: ClaimedRow) -> Result<Self, SqlError> {
        let context: Context =
            serde_json::from_str(&row.context).map_err(|e| SqlError::Failed(format!("context: {e}")))?;
        let body = match (row.payload, row.payload_ref) {
            (Some(payload), _) => Body::Inline(payload),
            (None, Some(key)) => Body::Blob(key),
            (None, None) => return Err(SqlError::Failed("a ledger row without payload".to_owned())),
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
        let message =
            Message { envelope, body, topic: row.topic, replay_of: row.replay_of, attempt: row.attempts + 1 };
        Ok(Self { message, attempts: row.attempts })
    }
}
