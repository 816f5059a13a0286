//! Running a replay of many, step by step, for as long as the caller allows.
//!
//! Whoever runs a replay holds its lease, in the first shard, and renews it before each step. That keeps its pace; its counts
//! do not hang on it: a step in a shard counts only if nobody has taken it yet (`replay_progress`), so that a runner which was
//! believed dead moves nothing twice.
//!
//! A step makes these calls, and a crash at any of them loses nothing: one to the first shard (renew the lease, reserve the
//! time, see whether it was cancelled), one to the shard (move a page, count it, read what to send and the next page), one
//! `sendBatch` per topic and 256 KB, one to the shard (record the sends). A run makes three or four more in the first shard and one
//! in each shard that it comes to.

use super::job::{Job, JobRow, JobState};
use super::jobs::{Jobs, READ_JOB};
use super::pace::reserve;
use super::pages::Walk;
use super::sending::Replayer;
use super::step::Step;
use crate::claim::Claimant;
use crate::incident::OperationError;
use crate::ledger::{batch_with_retry, outcome};
use crate::limits::{REPLAY_RUNNER_LEASE_MS, REPLAY_RUNNER_POLL_MS};
use crate::ports::{Clock, Queues, Sql, SqlError, Statement, Value};
use crate::time::Timestamp;

/// Takes the lease of a replay, if nobody holds it.
pub const TAKE_RUNNER: &str = "
    UPDATE replays SET runner = ?2, runner_until = ?3
     WHERE replay_id = ?1 AND status = 'running' AND (runner IS NULL OR runner = ?2 OR runner_until <= ?4)";

/// Renews the lease and reserves the time of the next step.
pub const RENEW_RUNNER: &str = "
    UPDATE replays SET runner_until = ?3, resume_at = ?4, updated_at = ?5
     WHERE replay_id = ?1 AND status = 'running' AND runner = ?2";

/// Gives the lease back.
pub const RELEASE_RUNNER: &str = "
    UPDATE replays SET runner = NULL, runner_until = NULL WHERE replay_id = ?1 AND runner = ?2";

/// Ends a replay that has come to its end in every shard.
pub const COMPLETE: &str = "
    UPDATE replays SET status = 'completed', updated_at = ?3
     WHERE replay_id = ?1 AND status = 'running' AND runner = ?2";

/// Why a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// There is nothing left to move.
    Finished,
    /// Its time is over.
    Deadline,
    /// It was cancelled, or somebody else runs it now.
    Taken,
}

/// One run of one replay.
struct Run<'a> {
    job: &'a Job,
    runner: &'a str,
    deadline: Timestamp,
    /// When the rate allows the next step.
    resume_at: Timestamp,
    steps: u64,
}

impl<S: Sql, Q: Queues, C: Clock> Replayer<'_, S, Q, C> {
    /// Works on a replay until `deadline`, or until it ends. If somebody else runs it, waits for them. `runner` is random and
    /// unique to the run.
    pub async fn advance(
        &self,
        replay_id: &str,
        runner: &str,
        deadline: Timestamp,
    ) -> Result<Job, OperationError> {
        if let Some((job, resume_at)) = self.take_runner(replay_id, runner, deadline).await? {
            let mut run = Run { job: &job, runner, deadline, resume_at, steps: 0 };
            let end = self.run(&mut run).await;
            // Without an answer the lease simply ends, and the next runner waits for that.
            let released = self.end_run(&run, &end).await;
            end.and(released)?;
        }
        Jobs { ledger: self.ledger }.view(replay_id).await
    }

    async fn take_runner(
        &self,
        replay_id: &str,
        runner: &str,
        deadline: Timestamp,
    ) -> Result<Option<(Job, Timestamp)>, OperationError> {
        loop {
            let now = self.clock.now();
            let values =
                vec![replay_id.into(), runner.into(), now.plus_ms(REPLAY_RUNNER_LEASE_MS).into(), now.into()];
            let statements =
                vec![Statement::new(TAKE_RUNNER, values), Statement::new(&READ_JOB, vec![replay_id.into()])];
            let outcomes = batch_with_retry(self.ledger.shard(0), statements).await?;
            let row = outcome(&outcomes, 1)?.decode::<JobRow>()?.pop();
            let row = row.ok_or(OperationError::NotFound("replay"))?;
            let (resume_at, is_ours) = (row.resume_at, row.runner.as_deref() == Some(runner));
            let job = row.job()?;
            if job.has_ended() {
                return Ok(None);
            }
            if is_ours {
                return Ok(Some((job, resume_at)));
            }
            if self.clock.now().plus_ms(REPLAY_RUNNER_POLL_MS as i64) >= deadline {
                return Ok(None);
            }
            self.clock.sleep_ms(REPLAY_RUNNER_POLL_MS).await;
        }
    }

    /// Goes through the shards in order. One that does not answer holds up no other; its error is told in the end.
    async fn run(&self, run: &mut Run<'_>) -> Result<End, SqlError> {
        let only = run.job.filter.tenant.as_deref().map(|tenant| self.ledger.shard_of(tenant));
        let mut answer = Ok(End::Finished);
        for (number, shard) in self.ledger.shards() {
            if only.is_some_and(|only| only != number) {
                continue;
            }
            match self.run_shard(run, shard).await {
                Ok(End::Finished) => {}
                Ok(end) => return answer.and(Ok(end)),
                Err(error) => answer = answer.and(Err(error)),
            }
        }
        answer
    }

    async fn run_shard(&self, run: &mut Run<'_>, shard: &S) -> Result<End, SqlError> {
        let walk = Walk::of(run.job);
        let mut statements = vec![walk.open()];
        statements.extend(walk.look()?);
        let mut page = walk.page(&batch_with_retry(shard, statements).await?, 1)?;
        while let Some(next) = page.next.take() {
            if !self.wait_for_turn(run).await {
                return Ok(End::Deadline);
            }
            if !self.renew(run, page.targets.len()).await? {
                return Ok(End::Taken);
            }
            let now = self.clock.now();
            let claimant = Claimant::new(format!("{}-{}", run.runner, run.steps), now);
            run.steps += 1;
            let step = Step { walk: &walk, page: &page, next: &next };
            let outcomes = batch_with_retry(shard, step.statements(run.job, &claimant, now)?).await?;
            let following = step.following(&outcomes)?;
            // Somebody else has taken this step, so the lease must be theirs.
            if following.last_op.as_deref() != Some(&claimant.token) {
                return Ok(End::Taken);
            }
            self.send(step.claims(&outcomes)?, &claimant).await?;
            page = following;
        }
        Ok(End::Finished)
    }

    /// Waits until the rate allows another step, but not beyond the deadline; whether it is before the deadline.
    async fn wait_for_turn(&self, run: &Run<'_>) -> bool {
        let now = self.clock.now();
        let until = run.resume_at.min(run.deadline);
        if until > now {
            self.clock.sleep_ms(until.unix_ms().abs_diff(now.unix_ms())).await;
        }
        self.clock.now() < run.deadline
    }

    /// Whether the replay is still this runner's.
    async fn renew(&self, run: &mut Run<'_>, messages: usize) -> Result<bool, SqlError> {
        let now = self.clock.now();
        run.resume_at = reserve(run.resume_at, now, messages, run.job.rate_per_second);
        let replay_id = run.job.replay_id.as_str();
        let values = vec![
            replay_id.into(),
            run.runner.into(),
            now.plus_ms(REPLAY_RUNNER_LEASE_MS).into(),
            run.resume_at.into(),
            now.into(),
        ];
        let statements =
            vec![Statement::new(RENEW_RUNNER, values), Statement::new(&READ_JOB, vec![replay_id.into()])];
        let outcomes = batch_with_retry(self.ledger.shard(0), statements).await?;
        let row = outcome(&outcomes, 1)?.decode::<JobRow>()?.pop();
        Ok(row
            .is_some_and(|row| row.status == JobState::Running && row.runner.as_deref() == Some(run.runner)))
    }

    async fn end_run(&self, run: &Run<'_>, end: &Result<End, SqlError>) -> Result<(), SqlError> {
        let lease: Vec<Value> = vec![run.job.replay_id.as_str().into(), run.runner.into()];
        let mut statements = Vec::new();
        if *end == Ok(End::Finished) {
            let mut values = lease.clone();
            values.push(self.clock.now().into());
            statements.push(Statement::new(COMPLETE, values));
        }
        statements.push(Statement::new(RELEASE_RUNNER, lease));
        batch_with_retry(self.ledger.shard(0), statements).await.map(|_| ())
    }
}
