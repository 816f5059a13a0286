//! Looking at replays of many, and stopping them. Their records are in the first shard, their counts in each shard.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::job::{COLUMNS, Job, JobRow, JobState};
use crate::incident::{Applied, Operation, OperationError, in_every_shard, rows_of_two};
use crate::ledger::{Ledger, batch_with_retry, json_rows, outcome};
use crate::limits::{REPLAYS_RUNNING_MAX, REPLAYS_SHOWN_MAX};
use crate::ports::{Sql, SqlError, Statement};

/// The replays of many of a ledger.
#[derive(Debug)]
pub struct Jobs<'a, S> {
    /// Where they are.
    pub ledger: &'a Ledger<S>,
}

/// Reads a replay.
pub static READ_JOB: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {COLUMNS} FROM replays WHERE replay_id = ?1"));

/// Reads the newest replays.
pub static LIST_JOBS: LazyLock<String> = LazyLock::new(|| {
    format!("SELECT {COLUMNS} FROM replays WHERE replay_id >= 'rep_' ORDER BY replay_id DESC LIMIT ?1")
});

/// Reads what replays have moved in a shard.
pub const READ_PROGRESS_OF: &str = "
    SELECT replay_id, seen, moved FROM replay_progress WHERE replay_id IN (SELECT value FROM json_each(?1))";

/// Finds the replays that are not at their end, those that were asked for first in front.
pub const RUNNING_JOBS: &str = "
    SELECT replay_id FROM replays WHERE status = 'running' AND created_at > '' ORDER BY created_at LIMIT ?1";

/// Stops a replay. Its runner is from then on the operation that has stopped it.
pub const CANCEL: &str = "
    UPDATE replays SET status = 'cancelled', runner = ?2, runner_until = NULL, updated_at = ?3
     WHERE replay_id = ?1 AND status = 'running'";

/// Writes down who has stopped it, if this operation did.
pub const LOG_CANCEL: &str = "
    INSERT INTO ops_log (op_id, at, actor, action, replay_id)
    SELECT ?2, ?3, ?4, 'cancel', replay_id FROM replays
     WHERE replay_id = ?1 AND status = 'cancelled' AND runner = ?2
    ON CONFLICT (op_id) DO NOTHING";

/// Reads a replay, and whether an operation has stopped it.
pub static READ_CANCELLED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {COLUMNS}, EXISTS (SELECT 1 FROM ops_log WHERE op_id = ?2) AS applied
           FROM replays WHERE replay_id = ?1"
    )
});

#[derive(Deserialize)]
struct Counts {
    replay_id: String,
    seen: u64,
    moved: u64,
}

impl<S: Sql> Jobs<'_, S> {
    /// One replay. One call to the first shard, and one to each.
    pub async fn view(&self, replay_id: &str) -> Result<Job, OperationError> {
        let read = Statement::new(&READ_JOB, vec![replay_id.into()]);
        let outcomes = batch_with_retry(self.ledger.shard(0), vec![read]).await?;
        let row = outcome(&outcomes, 0)?.decode::<JobRow>()?.pop();
        let job = row.ok_or(OperationError::NotFound("replay"))?.job()?;
        let counted = self.counted(vec![job]).await?.pop();
        counted.ok_or(OperationError::NotFound("replay"))
    }

    /// The newest replays. One call to the first shard, and one to each.
    pub async fn list(&self) -> Result<Vec<Job>, OperationError> {
        let limit = i64::try_from(REPLAYS_SHOWN_MAX).unwrap_or(i64::MAX);
        let outcomes =
            batch_with_retry(self.ledger.shard(0), vec![Statement::new(&LIST_JOBS, vec![limit.into()])])
                .await?;
        let rows: Vec<JobRow> = outcome(&outcomes, 0)?.decode()?;
        let jobs = rows.into_iter().map(JobRow::job).collect::<Result<_, _>>()?;
        Ok(self.counted(jobs).await?)
    }

    /// The replays that a runner should work on. One call.
    pub async fn running(&self) -> Result<Vec<String>, OperationError> {
        #[derive(Deserialize)]
        struct Row {
            replay_id: String,
        }
        let limit = i64::try_from(REPLAYS_RUNNING_MAX).unwrap_or(i64::MAX);
        let read = Statement::new(RUNNING_JOBS, vec![limit.into()]);
        let outcomes = batch_with_retry(self.ledger.shard(0), vec![read]).await?;
        let rows: Vec<Row> = outcome(&outcomes, 0)?.decode()?;
        Ok(rows.into_iter().map(|row| row.replay_id).collect())
    }

    /// Stops a replay: whoever runs it moves no more than the step that it has begun. Two calls and one per shard.
    pub async fn cancel(&self, replay_id: &str, op: &Operation<'_>) -> Result<Job, OperationError> {
        let cancel = vec![replay_id.into(), op.id.into(), op.now.into()];
        let mut log = cancel.clone();
        log.push(op.actor.into());
        let statements = vec![
            Statement::new(CANCEL, cancel),
            Statement::new(LOG_CANCEL, log),
            Statement::new(&READ_CANCELLED, vec![replay_id.into(), op.id.into()]),
        ];
        let outcomes = batch_with_retry(self.ledger.shard(0), statements).await?;
        let row = rows_of_two::<JobRow, Applied>(outcome(&outcomes, 2)?)?.pop();
        let (row, applied) = row.ok_or(OperationError::NotFound("replay"))?;
        let job = row.job()?;
        if !applied.is_true() {
            return Err(OperationError::Ended(job.status));
        }
        self.counted(vec![job.clone()])
            .await
            .map(|jobs| jobs.into_iter().next().unwrap_or(job))
            .map_err(Into::into)
    }

    async fn counted(&self, jobs: Vec<Job>) -> Result<Vec<Job>, SqlError> {
        let ids: Vec<_> = jobs.iter().map(|job| job.replay_id.as_str()).collect();
        let ids = json_rows(&ids)?;
        let statements = || vec![Statement::new(READ_PROGRESS_OF, vec![ids.as_str().into()])];
        let mut counts: HashMap<String, (u64, u64)> = HashMap::new();
        for answer in
            in_every_shard(self.ledger, statements, |outcomes| outcome(outcomes, 0)?.decode::<Counts>()).await
        {
            for row in answer? {
                let (seen, moved) = counts.entry(row.replay_id).or_default();
                *seen += row.seen;
                *moved += row.moved;
            }
        }
        let with_counts = |job: Job| {
            let (seen, moved) = counts.get(&job.replay_id).copied().unwrap_or_default();
            job.counted(seen, moved)
        };
        Ok(jobs.into_iter().map(with_counts).collect())
    }
}

impl Job {
    /// Whether there is nothing left to run.
    pub fn has_ended(&self) -> bool {
        self.status != JobState::Running
    }
}
