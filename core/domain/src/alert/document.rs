//! What an alert says, as a sink of the generic kind gets it: `{"type", "timestamp", "data": {…}}`, the shape that Standard
//! Webhooks recommends.
//!
//! | type | tells of |
//! | --- | --- |
//! | `swarm.incidents.reported` | incidents of one topic (or `queue`) and minute, for the first time |
//! | `swarm.incidents.still_open` | incidents that nobody has closed since they were told of |
//! | `swarm.outbox.overdue` | dispatches of a topic that are due and that nobody sends |
//! | `swarm.dead_letters.overdue` | dead letters of a topic that are neither archived nor reported |
//!
//! Fields of `data`: `text` for people; `topic` or `queue`; `count`, and `more` if there are at least as many; `minute`,
//! `tenants` (how many), `errors` (`message`, `count`; the most frequent), `incidentIds` (the first few) and `command`
//! (what to run to see them) of incidents; `since` of what is overdue.

use serde::{Deserialize, Serialize};

use crate::ports::SqlError;
use crate::time::Timestamp;

/// An alert.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Document {
    r#type: &'static str,
    timestamp: String,
    pub data: Data,
}

/// What it tells.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Data {
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    pub count: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minute: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenants: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorCount>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incident_ids: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// How often an error happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ErrorCount {
    pub message: String,
    pub count: usize,
}

impl Document {
    pub(super) fn new(r#type: &'static str, now: Timestamp, data: Data) -> Self {
        Self { r#type, timestamp: now.rfc3339(), data }
    }

    pub(super) fn encode(&self) -> Result<String, SqlError> {
        serde_json::to_string(self).map_err(|e| SqlError::Failed(e.to_string()))
    }
}

/// The text for people in a document that was written down.
pub(super) fn text_of(body: &str) -> Result<String, serde_json::Error> {
    #[derive(Deserialize)]
    struct Written {
        data: WrittenData,
    }
    #[derive(Deserialize)]
    struct WrittenData {
        text: String,
    }
    Ok(serde_json::from_str::<Written>(body)?.data.text)
}

pub(super) fn events(count: usize) -> String {
    counted(count, "event")
}

pub(super) fn messages(count: usize) -> String {
    counted(count, "message")
}

pub(super) fn incidents(count: usize) -> String {
    counted(count, "incident")
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
