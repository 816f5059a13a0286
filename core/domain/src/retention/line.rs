//! A line of the archive: one event with everything that the ledger knows about it.
//!
//! Times are as the ledger has them. `payloadJson` and `contextJson` are texts: parsing the line and then them gives the
//! values, and the texts themselves are kept to the byte. A large payload is an object of the archive, named by
//! `payloadRef`.

use serde::{Deserialize, Serialize};

use crate::incident::IncidentState;
use crate::states::DispatchState;
use crate::time::Timestamp;

/// The version that this release writes, and the only one that it reads.
pub(super) const VERSION: u32 = 1;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line {
    #[serde(default)]
    pub v: u32,
    pub tenant_id: String,
    pub event_id: String,
    pub r#type: String,
    pub occurred_at: Timestamp,
    pub source: Option<String>,
    pub subject: Option<String>,
    pub context_json: String,
    pub payload_json: Option<String>,
    pub payload_ref: Option<String>,
    pub payload_hash: String,
    pub receipt: String,
    pub created_at: Timestamp,
    #[serde(default)]
    pub dispatches: Vec<DispatchLine>,
    #[serde(default)]
    pub incidents: Vec<IncidentLine>,
}

/// A dispatch, at rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DispatchLine {
    pub topic: String,
    pub status: DispatchState,
    pub attempts: u32,
    pub max_attempts: u32,
    pub starts: u32,
    pub replays: u32,
    pub replay_of: Option<String>,
    pub last_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_json: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// An incident, closed. Its payload is the event's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IncidentLine {
    pub incident_id: String,
    pub kind: String,
    pub topic: String,
    pub source_queue: String,
    pub error_message: String,
    pub error_stack: Option<String>,
    pub generation: u32,
    pub retry_count: u32,
    pub status: IncidentState,
    pub last_op: Option<String>,
    pub alerted_at: Option<Timestamp>,
    pub replayed_at: Option<Timestamp>,
    pub resolved_at: Option<Timestamp>,
    pub resolved_by: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl IncidentLine {
    /// Whether nobody needs it any more.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.status, IncidentState::Resolved | IncidentState::Ignored)
    }
}

impl DispatchLine {
    /// Whether there may be an incident of it: it ended badly, or it was repeated because it had.
    pub(super) fn may_have_incident(&self) -> bool {
        self.ended_badly() || self.replays > 0
    }

    /// Whether it needs an incident that somebody has closed.
    pub(super) fn ended_badly(&self) -> bool {
        matches!(self.status, DispatchState::DeadLettered | DispatchState::DlqAbandoned)
    }
}
