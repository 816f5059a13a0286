//! Events as lists show them.

use serde::{Deserialize, Deserializer, Serialize};

use crate::incident::rfc3339;
use crate::states::{DispatchState, EventState};
use crate::time::Timestamp;
use crate::topic::Topic;

/// The columns of an [`EventBrief`], of the table `event_ledger l`.
pub(super) const COLUMNS: &str =
    "l.seq, l.tenant_id, l.event_id, l.type, l.source, l.subject, l.occurred_at, l.created_at,
       (SELECT json_group_array(json_object('topic', d.topic, 'status', d.status)) FROM event_dispatches d
         WHERE d.tenant_id = l.tenant_id AND d.event_id = l.event_id) AS dispatches";

/// An event in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventBrief {
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
    /// How it stands with each topic.
    pub dispatches: Vec<DispatchBrief>,
}

/// How an event stands with a topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DispatchBrief {
    /// The topic.
    pub topic: Topic,
    /// Where it stands.
    pub status: DispatchState,
}

/// A row of [`COLUMNS`].
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    pub seq: i64,
    tenant_id: String,
    event_id: String,
    r#type: String,
    source: Option<String>,
    subject: Option<String>,
    occurred_at: Timestamp,
    pub created_at: Timestamp,
    #[serde(deserialize_with = "nested")]
    dispatches: Vec<DispatchBrief>,
}

impl From<Row> for EventBrief {
    fn from(row: Row) -> Self {
        let states: Vec<_> = row.dispatches.iter().map(|dispatch| dispatch.status).collect();
        Self {
            event_id: row.event_id,
            tenant_id: row.tenant_id,
            r#type: row.r#type,
            status: EventState::of(&states),
            source: row.source,
            subject: row.subject,
            occurred_at: row.occurred_at,
            created_at: row.created_at,
            dispatches: row.dispatches,
        }
    }
}

/// A column that holds JSON as text; none is an empty list.
pub(super) fn nested<'de, T: serde::de::DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map_or(Ok(Vec::new()), |text| serde_json::from_str(&text)).map_err(serde::de::Error::custom)
}
