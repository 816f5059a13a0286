//! Incidents: listing them, looking at one, deciding what becomes of it.

use serde::Deserialize;
use serde_json::json;
use swarm_domain::incident::FilterInput;

use super::{Api, Page, Record};
use crate::failure::Failure;

/// An incident, as far as it is shown. States and kinds are text, so that a newer gateway's can be shown too.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Incident {
    /// Its id.
    pub incident_id: String,
    /// The tenant; empty if the message was not the gateway's, as are the next two.
    pub tenant_id: String,
    /// The event.
    pub event_id: String,
    /// The topic.
    pub topic: String,
    /// The event's type.
    pub r#type: Option<String>,
    /// Who gave up.
    pub kind: String,
    /// The queue that the message came from.
    pub source_queue: String,
    /// Where it stands.
    pub status: String,
    /// Why it failed the last time.
    pub error_message: String,
    /// How often it failed again after a replay.
    pub retry_count: u64,
    /// When it failed first.
    pub created_at: String,
    /// When it changed last.
    pub updated_at: String,
    /// When it was replayed last.
    pub replayed_at: Option<String>,
    /// When it was closed.
    pub resolved_at: Option<String>,
    /// Who closed it.
    pub resolved_by: Option<String>,
}

/// An incident with everything that is known of it.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// The incident.
    #[serde(flatten)]
    pub incident: Incident,
    /// The text of the event's payload or of the foreign message.
    pub payload: Option<String>,
    /// Or where the bucket of payloads has it.
    pub payload_ref: Option<String>,
    /// Where in the consumer's code it failed.
    pub error_stack: Option<String>,
    /// What operators have done, oldest first.
    #[serde(default)]
    pub log: Vec<LogEntry>,
}

/// One thing that an operator has done.
#[derive(Clone, Deserialize)]
pub struct LogEntry {
    /// When.
    pub at: String,
    /// Who.
    pub actor: String,
    /// What.
    pub action: String,
    /// What they had to say.
    pub note: Option<String>,
}

impl Api {
    /// One page of the incidents that a filter matches.
    pub fn incidents(
        &self,
        filter: &FilterInput,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Incident>, Failure> {
        let mut query: Vec<(&str, String)> = Vec::new();
        let status = filter.status.as_ref().map(|states| states.join(","));
        let fields = [
            ("status", &status),
            ("tenant", &filter.tenant),
            ("topic", &filter.topic),
            ("event", &filter.event),
            ("type", &filter.r#type),
            ("error", &filter.error),
            ("since", &filter.since),
            ("until", &filter.until),
        ];
        query.extend(fields.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))));
        query.push(("limit", limit.to_string()));
        query.extend(cursor.map(|cursor| ("cursor", cursor.to_owned())));
        self.get("incidents", &query)
    }

    /// Everything about one incident.
    pub fn incident(&self, incident_id: &str) -> Result<Record<Details>, Failure> {
        self.get(&format!("incidents/{incident_id}"), &[])
    }

    /// Does something with one incident: `triage`, `ignore` or `replay`.
    pub fn decide(
        &self,
        incident_id: &str,
        verb: &str,
        note: Option<&str>,
    ) -> Result<Record<Incident>, Failure> {
        let body = note.map_or_else(|| json!({}), |note| json!({ "note": note }));
        self.post(&format!("incidents/{incident_id}/{verb}"), &body)
    }
}
