//! A replay of many, as it is kept and as operators see it.

use serde::{Deserialize, Serialize};

use super::create::Of;
use crate::incident::{Filter, FilterInput, rfc3339};
use crate::ports::SqlError;
use crate::time::Timestamp;
use crate::topic::Topic;

/// The columns of a [`JobRow`].
pub(crate) const COLUMNS: &str =
    "replay_id, of, filter, topics, status, total, rate_per_second, resume_at, runner, created_by,
    created_at, updated_at";

/// Where a replay of many stands: it runs until it has come to its end or somebody has cancelled it. The names are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// There is more to do.
    Running,
    /// Everything that matched was gone through.
    Completed,
    /// An operator has stopped it.
    Cancelled,
}

impl JobState {
    /// The name under which it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A replay of many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Its id. Ids sort by the time at which they were made.
    pub replay_id: String,
    /// Whether it replays incidents or events.
    pub of: Of,
    /// Which of them.
    pub filter: Filter,
    /// The topics that events are repeated to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topics: Option<Vec<Topic>>,
    /// Where it stands.
    pub status: JobState,
    /// How many dispatches matched when it was asked for.
    pub total: u64,
    /// How many it has sent on their way.
    pub moved: u64,
    /// How many it has passed over, because somebody else had moved them or they had nothing to send.
    pub skipped: u64,
    /// How many it moves in a second.
    pub rate_per_second: u32,
    /// The operator who asked for it.
    pub created_by: String,
    /// When they did.
    #[serde(serialize_with = "rfc3339")]
    pub created_at: Timestamp,
    /// When it was worked on last.
    #[serde(serialize_with = "rfc3339")]
    pub updated_at: Timestamp,
}

impl Job {
    /// What it replays was there before this moment: later failures, even of what it has replayed itself, are not its own.
    pub(crate) fn until(&self) -> Timestamp {
        let asked = self.created_at.plus_ms(1);
        self.filter.until.map_or(asked, |until| until.min(asked))
    }

    /// With what was counted in the shards. What has left the filter before the replay came to it counts as skipped in the end.
    pub(crate) fn counted(mut self, seen: u64, moved: u64) -> Self {
        let seen = if self.status == JobState::Completed { seen.max(self.total) } else { seen };
        self.moved = moved;
        self.skipped = seen.saturating_sub(moved);
        self
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct JobRow {
    replay_id: String,
    of: Of,
    filter: String,
    topics: Option<String>,
    pub(crate) status: JobState,
    total: u64,
    rate_per_second: u32,
    pub(crate) resume_at: Timestamp,
    pub(crate) runner: Option<String>,
    created_by: String,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl JobRow {
    /// The replay without its counts.
    pub(crate) fn job(self) -> Result<Job, SqlError> {
        let unreadable =
            |error: String| SqlError::Failed(format!("replay {} is not readable: {error}", self.replay_id));
        let input: FilterInput = serde_json::from_str(&self.filter).map_err(|e| unreadable(e.to_string()))?;
        let filter = Filter::parse(input).map_err(|e| unreadable(e.to_string()))?;
        let topics = self.topics.as_deref().map(serde_json::from_str).transpose();
        let topics = topics.map_err(|e| unreadable(e.to_string()))?;
        Ok(Job {
            replay_id: self.replay_id,
            of: self.of,
            filter,
            topics,
            status: self.status,
            total: self.total,
            moved: 0,
            skipped: 0,
            rate_per_second: self.rate_per_second,
            created_by: self.created_by,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}
