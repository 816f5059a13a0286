//! Replays of many: counting, creating, watching, moving on, cancelling.

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use swarm_domain::incident::FilterInput;
use swarm_domain::replay::Of;

use super::{Api, Record};
use crate::failure::Failure;

/// What is to be replayed.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayOfMany {
    /// Whether incidents or events.
    pub of: Of,
    /// Those that match this.
    pub filter: FilterInput,
    /// Where events go; an incident has its own topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topics: Option<Vec<String>>,
    /// Whether an empty filter is meant.
    #[serde(skip_serializing_if = "is_false")]
    pub all: bool,
    /// How fast, if not as fast as the gateway does by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_per_second: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(flatten)]
    replay: &'a ReplayOfMany,
    #[serde(skip_serializing_if = "is_false")]
    dry_run: bool,
}

/// A replay of many, as far as it is shown.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// Its id.
    pub replay_id: String,
    /// What it replays: incidents or events.
    pub of: String,
    /// Which of them.
    pub filter: Box<RawValue>,
    /// To which topics, if events are replayed.
    pub topics: Option<Vec<String>>,
    /// Where it stands.
    pub status: String,
    /// What matched when it was asked for.
    pub total: u64,
    /// What it has sent.
    pub moved: u64,
    /// What it passed over, because it had changed meanwhile or had nothing to send.
    pub skipped: u64,
    /// How fast it goes.
    pub rate_per_second: u64,
    /// Who asked for it.
    pub created_by: String,
    /// When it was asked for.
    pub created_at: String,
}

impl Replay {
    /// Whether there is more to come.
    pub fn is_running(&self) -> bool {
        self.status == "running"
    }

    /// Whether somebody stopped it.
    pub fn is_cancelled(&self) -> bool {
        self.status == "cancelled"
    }

    /// How many it is done with.
    pub fn done(&self) -> u64 {
        self.moved.saturating_add(self.skipped)
    }
}

#[derive(Deserialize)]
struct Count {
    count: u64,
}

#[derive(Deserialize)]
struct List {
    replays: Vec<Record<Replay>>,
}

impl Api {
    /// How many sends a replay would be.
    pub fn count(&self, replay: &ReplayOfMany) -> Result<u64, Failure> {
        self.post::<Count>("replays", &Request { replay, dry_run: true }).map(|answer| answer.count)
    }

    /// Creates a replay.
    pub fn create_replay(&self, replay: &ReplayOfMany) -> Result<Record<Replay>, Failure> {
        self.post("replays", &Request { replay, dry_run: false })
    }

    /// The latest replays.
    pub fn replays(&self) -> Result<Vec<Record<Replay>>, Failure> {
        self.get::<List>("replays", &[]).map(|answer| answer.replays)
    }

    /// One replay.
    pub fn replay(&self, replay_id: &str) -> Result<Record<Replay>, Failure> {
        self.get(&format!("replays/{replay_id}"), &[])
    }

    /// Moves a replay on for a few seconds.
    pub fn run_replay(&self, replay_id: &str) -> Result<Record<Replay>, Failure> {
        self.post(&format!("replays/{replay_id}/run"), &json!({}))
    }

    /// Stops a replay where it is.
    pub fn cancel_replay(&self, replay_id: &str) -> Result<Record<Replay>, Failure> {
        self.post(&format!("replays/{replay_id}/cancel"), &json!({}))
    }
}

// serde hands over a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}
