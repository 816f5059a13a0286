//! Looking at one event: what it says, and every attempt to deliver it to each of its topics.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Events;
use super::record::nested;
use crate::event::Context;
use crate::history::{Entry, timeline};
use crate::incident::{OperationError, incident_id_of, rfc3339, rfc3339_if_any};
use crate::ledger::{batch_with_retry, outcome};
use crate::payload::is_blob_of;
use crate::ports::{BlobError, Blobs, Sql, Statement};
use crate::states::{DispatchState, EventState};
use crate::time::Timestamp;

/// Reads an event.
pub const READ_EVENT: &str = "
    SELECT l.tenant_id, l.event_id, l.type, l.source, l.subject, l.occurred_at, l.created_at, l.context, l.payload,
           l.payload_ref, l.payload_hash
      FROM event_ledger l WHERE l.tenant_id = ?1 AND l.event_id = ?2";

/// Reads its dispatches.
pub const READ_DISPATCHES: &str = "
    SELECT d.topic, d.status, d.attempts, d.max_attempts, d.replays, d.replay_of, d.next_retry_at, d.lease, d.last_error,
           d.history, d.created_at, d.updated_at
      FROM event_dispatches d WHERE d.tenant_id = ?1 AND d.event_id = ?2 ORDER BY d.topic";

/// Reads its payload, or where it is.
pub const READ_PAYLOAD: &str = "
    SELECT l.payload, l.payload_ref, l.payload_hash FROM event_ledger l WHERE l.tenant_id = ?1 AND l.event_id = ?2";

/// Everything that the ledger knows of an event.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventDetails {
    /// The event's id, unique within the tenant.
    pub event_id: String,
    /// The tenant.
    pub tenant_id: String,
    /// Its type.
    pub r#type: String,
    /// Where it stands as a whole.
    pub status: EventState,
    /// The system that it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// When it happened, as its producer says.
    #[serde(serialize_with = "rfc3339")]
    pub occurred_at: Timestamp,
    /// When it was recorded.
    #[serde(serialize_with = "rfc3339")]
    pub created_at: Timestamp,
    /// What surrounds it: version, correlationId, causationId, actor, traceparent.
    pub context: Context,
    /// SHA-256 of the payload's text, in hex.
    pub payload_hash: String,
    /// The payload's text, if the ledger holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// Or where the blob store has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_ref: Option<String>,
    /// How it stands with each topic.
    pub dispatches: Vec<DispatchDetails>,
}

/// Everything that the ledger knows of an event on its way to a topic.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DispatchDetails {
    /// The topic.
    pub topic: String,
    /// Where it stands.
    pub status: DispatchState,
    /// Failed sends since it was recorded, or replayed last.
    pub attempts: u32,
    /// After how many of them it is given up.
    pub max_attempts: u32,
    /// How often it was replayed.
    pub replays: u32,
    /// The incident, replay of many or archive that the last replay came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_of: Option<String>,
    /// When somebody looks at it again.
    #[serde(serialize_with = "rfc3339_if_any", skip_serializing_if = "Option::is_none")]
    pub next_retry_at: Option<Timestamp>,
    /// Until when a consumer owns it that has not told how it ended.
    #[serde(serialize_with = "rfc3339_if_any", skip_serializing_if = "Option::is_none")]
    pub handled_until: Option<Timestamp>,
    /// Why it failed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The incident that it has, or has had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incident_id: Option<String>,
    /// What has happened to it, oldest first. Of very many failures the oldest are left out.
    pub timeline: Vec<Entry>,
}

#[derive(Deserialize)]
struct EventRow {
    tenant_id: String,
    event_id: String,
    r#type: String,
    source: Option<String>,
    subject: Option<String>,
    occurred_at: Timestamp,
    created_at: Timestamp,
    context: String,
    payload: Option<String>,
    payload_ref: Option<String>,
    payload_hash: String,
}

#[derive(Deserialize)]
struct DispatchRow {
    topic: String,
    status: DispatchState,
    attempts: u32,
    max_attempts: u32,
    replays: u32,
    replay_of: Option<String>,
    next_retry_at: Option<Timestamp>,
    lease: Option<Timestamp>,
    last_error: Option<String>,
    #[serde(deserialize_with = "nested")]
    history: Vec<Entry>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Deserialize)]
struct PayloadRow {
    payload: Option<String>,
    payload_ref: Option<String>,
    payload_hash: String,
}

impl<S: Sql> Events<'_, S> {
    /// Everything about one event. One call.
    pub async fn view(&self, tenant_id: &str, event_id: &str) -> Result<EventDetails, OperationError> {
        let name = || vec![tenant_id.into(), event_id.into()];
        let statements = vec![Statement::new(READ_EVENT, name()), Statement::new(READ_DISPATCHES, name())];
        let shard = self.ledger.shard(self.ledger.shard_of(tenant_id));
        let outcomes = batch_with_retry(shard, statements).await?;
        let event: Option<EventRow> = outcome(&outcomes, 0)?.decode()?.pop();
        let dispatches: Vec<DispatchRow> = outcome(&outcomes, 1)?.decode()?;
        event.map(|event| event.with(dispatches)).ok_or(OperationError::NotFound("event"))
    }

    /// The payload of one event, to the byte. One call, and one of the blob store if the payload is large.
    pub async fn payload<B: Blobs>(
        &self,
        blobs: &B,
        tenant_id: &str,
        event_id: &str,
    ) -> Result<Box<RawValue>, OperationError> {
        let statement = Statement::new(READ_PAYLOAD, vec![tenant_id.into(), event_id.into()]);
        let shard = self.ledger.shard(self.ledger.shard_of(tenant_id));
        let outcomes = batch_with_retry(shard, vec![statement]).await?;
        let row: Option<PayloadRow> = outcome(&outcomes, 0)?.decode()?.pop();
        let row = row.ok_or(OperationError::NotFound("event"))?;
        let text = match (row.payload, row.payload_ref) {
            (Some(text), _) => text,
            (None, Some(key)) => from_blob(blobs, &key, &row.payload_hash).await?,
            (None, None) => String::new(),
        };
        RawValue::from_string(text).map_err(|_| lost("is not JSON").into())
    }
}

/// Rows that nobody else has written are as they were written; a store may still lose or swap an object.
async fn from_blob<B: Blobs>(blobs: &B, key: &str, hash: &str) -> Result<String, BlobError> {
    if !is_blob_of(key, hash) {
        return Err(lost("has another name than its event says"));
    }
    let bytes = blobs.get(key).await?.ok_or_else(|| lost("is gone"))?;
    String::from_utf8(bytes).map_err(|_| lost("is not text"))
}

fn lost(why: &str) -> BlobError {
    BlobError(format!("the payload {why}"))
}

impl EventRow {
    fn with(self, dispatches: Vec<DispatchRow>) -> EventDetails {
        let states: Vec<_> = dispatches.iter().map(|dispatch| dispatch.status).collect();
        let dispatches = dispatches.into_iter().map(|row| row.of(&self.tenant_id, &self.event_id)).collect();
        EventDetails {
            event_id: self.event_id,
            tenant_id: self.tenant_id,
            r#type: self.r#type,
            status: EventState::of(&states),
            source: self.source,
            subject: self.subject,
            occurred_at: self.occurred_at,
            created_at: self.created_at,
            // The gateway has written it; what it cannot read is shown as nothing.
            context: serde_json::from_str(&self.context).unwrap_or_default(),
            payload_hash: self.payload_hash,
            payload: self.payload,
            payload_ref: self.payload_ref,
            dispatches,
        }
    }
}

impl DispatchRow {
    fn of(self, tenant_id: &str, event_id: &str) -> DispatchDetails {
        let failed = matches!(self.status, DispatchState::DeadLettered | DispatchState::DlqAbandoned);
        let incident = self.replay_of.as_deref().is_some_and(|of| of.starts_with("inc_"));
        let incident_id = (failed || incident).then(|| incident_id_of(tenant_id, event_id, &self.topic));
        DispatchDetails {
            incident_id,
            timeline: timeline(self.history, self.created_at, self.status, self.updated_at, self.replays),
            topic: self.topic,
            status: self.status,
            attempts: self.attempts,
            max_attempts: self.max_attempts,
            replays: self.replays,
            replay_of: self.replay_of,
            next_retry_at: self.next_retry_at,
            handled_until: self.lease,
            last_error: self.last_error,
        }
    }
}
