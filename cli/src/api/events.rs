//! Events: listing them, following what arrives, looking at one.

use serde::Deserialize;
use swarm_domain::event::Context;
use swarm_domain::events::EventFilterInput;

use super::{Api, Page, Record};
use crate::failure::Failure;

/// An event, as far as it is shown. States are text, so that a newer gateway's can be shown too.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its id, unique within the tenant.
    pub event_id: String,
    /// The tenant.
    pub tenant_id: String,
    /// Its type.
    pub r#type: String,
    /// Where it stands as a whole.
    pub status: String,
    /// The system that it comes from.
    pub source: Option<String>,
    /// What it is about.
    pub subject: Option<String>,
    /// When it happened, as its producer says.
    pub occurred_at: String,
    /// When it was recorded.
    pub created_at: String,
    /// How it stands with each topic.
    pub dispatches: Vec<Dispatch>,
}

/// How an event stands with a topic. A list says no more than the first two.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dispatch {
    /// The topic.
    pub topic: String,
    /// Where it stands.
    pub status: String,
    /// When somebody looks at it again.
    pub next_retry_at: Option<String>,
    /// The incident that it has, or has had.
    pub incident_id: Option<String>,
    /// What has happened to it, oldest first.
    #[serde(default)]
    pub timeline: Vec<Happening>,
}

/// One thing that happened to a dispatch.
#[derive(Clone, Deserialize)]
pub struct Happening {
    /// When.
    pub at: String,
    /// What.
    pub what: String,
    /// Why, if it is a failure.
    pub error: Option<String>,
    /// What a replay came from.
    pub by: Option<String>,
}

/// An event with everything that is known of it.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventDetails {
    /// What a list shows, with more of each dispatch.
    #[serde(flatten)]
    pub event: Event,
    /// What surrounds it.
    #[serde(default)]
    pub context: Context,
    /// The text of its payload.
    pub payload: Option<String>,
    /// Or where the bucket of payloads has it.
    pub payload_ref: Option<String>,
}

/// What has been recorded since one asked last.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Followed {
    /// The events, oldest first.
    pub events: Vec<Record<Event>>,
    /// Where to go on.
    pub next_cursor: String,
    /// Whether there is more already.
    pub more: bool,
}

impl Api {
    /// One page of the events that a filter matches, newest first.
    pub fn events(
        &self,
        filter: &EventFilterInput,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Event>, Failure> {
        self.get("events", &query(filter, limit, cursor))
    }

    /// What was recorded since a cursor, or from a filter's `since` on, or nothing yet.
    pub fn follow(
        &self,
        filter: &EventFilterInput,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Followed, Failure> {
        self.get("events/follow", &query(filter, limit, cursor))
    }

    /// Everything about one event.
    pub fn event(&self, tenant: &str, id: &str) -> Result<Record<EventDetails>, Failure> {
        self.get("event", &[("tenant", tenant.to_owned()), ("id", id.to_owned())])
    }

    /// The payload of one, to the byte.
    pub fn payload(&self, tenant: &str, id: &str) -> Result<Vec<u8>, Failure> {
        self.get_bytes("event/payload", &[("tenant", tenant.to_owned()), ("id", id.to_owned())])
    }
}

fn query(filter: &EventFilterInput, limit: usize, cursor: Option<&str>) -> Vec<(&'static str, String)> {
    let fields = [
        ("status", filter.status.as_ref().map(|states| states.join(","))),
        ("tenant", filter.tenant.clone()),
        ("id", filter.id.clone()),
        ("type", filter.r#type.clone()),
        ("topic", filter.topic.clone()),
        ("since", filter.since.clone()),
        ("until", filter.until.clone()),
        ("limit", Some(limit.to_string())),
        ("cursor", cursor.map(str::to_owned)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
