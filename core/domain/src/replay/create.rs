//! Asking for a replay of many: what it may say, how many it would move, and its record.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::job::{Job, JobState};
use super::jobs::Jobs;
use super::pages::{FILTER_OF_EVENTS, filter_of_events, replayable_states, tenants};
use crate::ids::stable_hash;
use crate::incident::{
    Filter, FilterInput, Operation, OperationError, REST_OF_FILTER, lower_bound, parse_topic, rest_of_filter,
    walks,
};
use crate::join::join_all;
use crate::ledger::{batch_with_retry, json_rows};
use crate::limits::{REPLAY_RATE_PER_SECOND_DEFAULT, REPLAY_RATE_PER_SECOND_MAX, REPLAY_TOPICS_MAX};
use crate::ports::{Sql, SqlError, Statement};
use crate::topic::Topic;

/// What is replayed. The names are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    /// Incidents that are open or triaged.
    Incidents,
    /// Events, whether they were delivered or not, to topics that the operator names.
    Events,
}

impl Of {
    /// The name under which it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Incidents => "incidents",
            Self::Events => "events",
        }
    }
}

/// What an operator asks for, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRequest {
    of: Of,
    filter: Filter,
    topics: Option<Vec<Topic>>,
    rate_per_second: u32,
}

/// Counts the incidents of one state that a replay would move.
pub static COUNT_BY_STATUS: LazyLock<String> = LazyLock::new(|| count_incidents("status"));
/// Counts the incidents of one tenant that a replay would move.
pub static COUNT_BY_TENANT: LazyLock<String> = LazyLock::new(|| count_incidents("tenant_id"));

fn count_incidents(column: &str) -> String {
    format!(
        "SELECT count(*) AS n FROM dlq_incidents i
          WHERE {REST_OF_FILTER} AND i.{column} = ?6 AND i.created_at >= ?7 AND i.created_at < ?8 AND i.kind <> 'foreign'"
    )
}

/// Counts events.
pub static COUNT_EVENTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT count(*) AS n FROM event_ledger l
          WHERE {FILTER_OF_EVENTS} AND l.tenant_id >= ?6 AND l.tenant_id <= ?7"
    )
});

/// Records a replay, unless an earlier run of the same batch has.
pub const INSERT_JOB: &str = "
    INSERT INTO replays (replay_id, of, filter, topics, status, total, rate_per_second, resume_at, created_by, created_at,
                         updated_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?8, ?8)
    ON CONFLICT (replay_id) DO NOTHING";

/// Writes down who asked for it, for what, and why.
pub const LOG_JOB: &str = "
    INSERT INTO ops_log (op_id, at, actor, action, replay_id, note) VALUES (?1, ?2, ?3, 'replay_many', ?4, ?5)
    ON CONFLICT (op_id) DO NOTHING";

impl JobRequest {
    /// Checks what an operator asks for. Everything is replayed only if they say so.
    pub fn parse(
        of: Of,
        filter: FilterInput,
        all: bool,
        topics: Option<Vec<String>>,
        rate_per_second: Option<u32>,
    ) -> Result<Self, OperationError> {
        let mut filter = Filter::parse(filter)?;
        match (filter.is_empty(), all) {
            (true, false) => return invalid("filter", "is empty; say `all: true` to replay everything"),
            (false, true) => return invalid("all", "contradicts the filter"),
            _ => {}
        }
        let topics = match of {
            Of::Incidents => incidents_only(&mut filter, topics)?,
            Of::Events => Some(events_only(&filter, topics)?),
        };
        let rate_per_second = rate_per_second.unwrap_or(REPLAY_RATE_PER_SECOND_DEFAULT);
        if !(1..=REPLAY_RATE_PER_SECOND_MAX).contains(&rate_per_second) {
            return invalid("ratePerSecond", format!("must be 1 to {REPLAY_RATE_PER_SECOND_MAX}"));
        }
        Ok(Self { of, filter, topics, rate_per_second })
    }
}

/// Without a state, the states that a replay may leave are meant; with one that it may not leave, nothing can match.
fn incidents_only(
    filter: &mut Filter,
    topics: Option<Vec<String>>,
) -> Result<Option<Vec<Topic>>, OperationError> {
    if topics.is_some() {
        return invalid("topics", "goes with a replay of events; an incident has its own topic");
    }
    let replayable = replayable_states();
    let status = filter.status.get_or_insert_with(|| replayable.clone());
    match status.iter().find(|state| !replayable.contains(state)) {
        Some(state) => {
            invalid("status", format!("names incidents that are {}, which no replay may move", state.name()))
        }
        None => Ok(None),
    }
}

fn events_only(filter: &Filter, topics: Option<Vec<String>>) -> Result<Vec<Topic>, OperationError> {
    if filter.status.is_some() {
        return invalid("status", "goes with a replay of incidents");
    }
    if filter.error.is_some() {
        return invalid("error", "goes with a replay of incidents");
    }
    let mut distinct = Vec::new();
    for topic in topics.unwrap_or_default() {
        let topic = parse_topic("topics", topic)?;
        if !distinct.contains(&topic) {
            distinct.push(topic);
        }
    }
    match distinct.len() {
        0 => invalid("topics", "must name the topics that the events go to"),
        1..=REPLAY_TOPICS_MAX => Ok(distinct),
        _ => invalid("topics", format!("names more than {REPLAY_TOPICS_MAX} topics")),
    }
}

fn invalid<T>(field: &'static str, why: impl Into<String>) -> Result<T, OperationError> {
    Err(OperationError::invalid(field, why))
}

impl<S: Sql> Jobs<'_, S> {
    /// How many dispatches a replay would move at most. One call per shard, all at once.
    pub async fn count(&self, request: &JobRequest, op: &Operation<'_>) -> Result<u64, OperationError> {
        let job = request.job(0, op);
        let counts = self.ledger.shards().map(async |(_, shard)| count_shard(shard, &job).await);
        let mut total: u64 = 0;
        for count in join_all(counts).await {
            total += count?;
        }
        Ok(total)
    }

    /// Counts and records a replay; a runner does the rest. One call per shard, and one more. The operation's id makes the
    /// replay's, so running it again records nothing new.
    pub async fn create(&self, request: &JobRequest, op: &Operation<'_>) -> Result<Job, OperationError> {
        let total = self.count(request, op).await?;
        let job = request.job(total, op);
        let filter = serde_json::to_string(&job.filter).map_err(|e| SqlError::Failed(e.to_string()))?;
        let topics = job.topics.as_deref().map(json_rows).transpose()?;
        let values = vec![
            job.replay_id.as_str().into(),
            job.of.name().into(),
            filter.as_str().into(),
            topics.as_deref().into(),
            job.status.name().into(),
            i64::try_from(total).unwrap_or(i64::MAX).into(),
            i64::from(job.rate_per_second).into(),
            op.now.into(),
            op.actor.into(),
        ];
        let log = vec![
            op.id.into(),
            op.now.into(),
            op.actor.into(),
            job.replay_id.as_str().into(),
            op.note.map_or(filter, str::to_owned).into(),
        ];
        let statements = vec![Statement::new(INSERT_JOB, values), Statement::new(LOG_JOB, log)];
        batch_with_retry(self.ledger.shard(0), statements).await?;
        Ok(job)
    }
}

impl JobRequest {
    fn job(&self, total: u64, op: &Operation<'_>) -> Job {
        let unique: String = stable_hash(&["replay", op.id]).chars().take(16).collect();
        Job {
            replay_id: format!("rep_{:012x}{unique}", op.now.unix_ms().max(0)),
            of: self.of,
            filter: self.filter.clone(),
            topics: self.topics.clone(),
            status: if total == 0 { JobState::Completed } else { JobState::Running },
            total,
            moved: 0,
            skipped: 0,
            rate_per_second: self.rate_per_second,
            created_by: op.actor.to_owned(),
            created_at: op.now,
            updated_at: op.now,
        }
    }
}

async fn count_shard<S: Sql>(shard: &S, job: &Job) -> Result<u64, SqlError> {
    #[derive(Deserialize)]
    struct Count {
        n: u64,
    }
    let mut statements = Vec::new();
    match job.of {
        Of::Incidents => {
            let (sql, positions) = walks(&job.filter, &COUNT_BY_STATUS, &COUNT_BY_TENANT);
            for position in positions {
                let mut values = rest_of_filter(&job.filter)?;
                values.extend([position.into(), lower_bound(&job.filter).into(), job.until().into()]);
                statements.push(Statement::new(sql, values));
            }
        }
        Of::Events => {
            let mut values = filter_of_events(&job.filter, job.until());
            let (first, last) = tenants(&job.filter);
            values.extend([first.into(), last.into()]);
            statements.push(Statement::new(&COUNT_EVENTS, values));
        }
    }
    let mut rows: u64 = 0;
    for outcome in batch_with_retry(shard, statements).await? {
        rows += outcome.decode::<Count>()?.iter().map(|count| count.n).sum::<u64>();
    }
    Ok(rows * job.topics.as_ref().map_or(1, |topics| topics.len() as u64))
}
