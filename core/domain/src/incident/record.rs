//! Incidents as operators see them: read from rows, written as the API's JSON.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::report::Kind;
use super::state::IncidentState;
use crate::ports::{Outcome, SqlError};
use crate::time::Timestamp;

/// The columns of an [`Incident`], of the table `dlq_incidents i`.
pub(crate) const COLUMNS: &str =
    "i.incident_id, i.tenant_id, i.event_id, i.topic, i.type, i.kind, i.source_queue, i.status,
    i.error_message, i.retry_count, i.created_at, i.updated_at, i.replayed_at, i.resolved_at,
    CASE WHEN i.resolved_at IS NOT NULL THEN i.resolved_by END AS resolved_by";

/// A failure and what has become of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all(serialize = "camelCase"))]
pub struct Incident {
    /// Its id.
    pub incident_id: String,
    /// The tenant; empty if the message was not ours, as are the next two.
    pub tenant_id: String,
    /// The event.
    pub event_id: String,
    /// The topic.
    pub topic: String,
    /// The event's type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    /// What kind of failure it is.
    pub kind: Kind,
    /// The queue that the message came from.
    pub source_queue: String,
    /// Where it stands.
    pub status: IncidentState,
    /// Why it failed the last time.
    pub error_message: String,
    /// How often it failed again after a replay.
    pub retry_count: u32,
    /// When it failed first.
    #[serde(serialize_with = "rfc3339")]
    pub created_at: Timestamp,
    /// When it changed last.
    #[serde(serialize_with = "rfc3339")]
    pub updated_at: Timestamp,
    /// When it was replayed last.
    #[serde(serialize_with = "rfc3339_if_any", skip_serializing_if = "Option::is_none")]
    pub replayed_at: Option<Timestamp>,
    /// When it was closed.
    #[serde(serialize_with = "rfc3339_if_any", skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<Timestamp>,
    /// The operator who closed it, or whose replay did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_by: Option<String>,
}

/// Everything that is known of an incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IncidentDetails {
    /// The incident.
    #[serde(flatten)]
    pub incident: Incident,
    /// The event's payload, or the text of a foreign message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// Or where the blob store has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_ref: Option<String>,
    /// Where in the consumer's code it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_stack: Option<String>,
    /// What operators have done, oldest first.
    pub log: Vec<LogEntry>,
}

/// One thing that an operator has done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all(serialize = "camelCase"))]
pub struct LogEntry {
    /// When.
    #[serde(serialize_with = "rfc3339")]
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// What.
    pub action: String,
    /// The replay of many that it was part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_id: Option<String>,
    /// What they had to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Rows that hold the columns of one thing and further ones of another. Each is read by itself: serde's way of reading both at
/// once buffers every value, and costs a Worker twenty kilobytes.
pub(crate) fn rows_of_two<A: DeserializeOwned, B: DeserializeOwned>(
    outcome: &Outcome,
) -> Result<Vec<(A, B)>, SqlError> {
    let rows: Vec<Box<RawValue>> = outcome.decode()?;
    let two = |row: &RawValue| Ok((serde_json::from_str(row.get())?, serde_json::from_str(row.get())?));
    let unexpected = |error: serde_json::Error| SqlError::Failed(format!("unexpected row: {error}"));
    rows.iter().map(|row| two(row).map_err(unexpected)).collect()
}

pub(crate) fn rfc3339<S: Serializer>(moment: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&moment.rfc3339())
}

pub(crate) fn rfc3339_if_any<S: Serializer>(
    moment: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match moment {
        Some(moment) => rfc3339(moment, serializer),
        None => serializer.serialize_none(),
    }
}
