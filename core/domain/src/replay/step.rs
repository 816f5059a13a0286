//! One step of a replay of many in one shard: the batch that moves a page, and what it answers.

use super::create::Of;
use super::job::Job;
use super::moving::{INSERT_MISSING, LOG_MOVED, MOVE_EVENTS, MOVE_INCIDENTS, RETRY_INCIDENTS, TAKE_STEP};
use super::pages::{Page, Place, Walk};
use crate::claim::{Claimant, Claims, read_named};
use crate::ledger::{json_rows, outcome};
use crate::ports::{Outcome, SqlError, Statement, Value};
use crate::time::Timestamp;

/// One step in one shard.
pub(crate) struct Step<'a> {
    pub(crate) walk: &'a Walk<'a>,
    /// What it moves.
    pub(crate) page: &'a Page,
    /// Where the replay is then.
    pub(crate) next: &'a Place,
}

impl Step<'_> {
    /// Moves the page, counts it, reads what is to be sent, and reads the next page, in this order.
    pub(crate) fn statements(
        &self,
        job: &Job,
        claimant: &Claimant,
        now: Timestamp,
    ) -> Result<Vec<Statement>, SqlError> {
        let targets = json_rows(&self.page.targets)?;
        let steps = Value::Integer(self.page.steps);
        let count = i64::try_from(self.page.targets.len()).unwrap_or(i64::MAX);
        let common = |fourth: Value| -> Vec<Value> {
            vec![
                targets.as_str().into(),
                claimant.until.into(),
                claimant.token.as_str().into(),
                fourth,
                job.replay_id.as_str().into(),
                steps.clone(),
            ]
        };
        let moving = common(now.into());
        let mut with_actor = moving.clone();
        with_actor.push(job.created_by.as_str().into());
        let mut taking = common(count.into());
        taking.extend([
            self.next.position.as_deref().into(),
            self.next.after_at.into(),
            self.next.after_seq.into(),
        ]);
        let (first, then): (Option<&'static str>, &'static str) = match job.of {
            Of::Incidents => (None, &MOVE_INCIDENTS),
            Of::Events => (Some(&INSERT_MISSING), &MOVE_EVENTS),
        };
        let mut statements: Vec<_> =
            first.map(|sql| Statement::new(sql, moving.clone())).into_iter().collect();
        statements.extend([
            Statement::new(then, moving),
            Statement::new(&RETRY_INCIDENTS, with_actor.clone()),
            Statement::new(&LOG_MOVED, with_actor),
            Statement::new(&TAKE_STEP, taking),
        ]);
        statements.push(read_named(targets.clone(), claimant));
        statements.extend(self.walk.look()?);
        Ok(statements)
    }

    /// What it has moved and may send.
    pub(crate) fn claims(&self, outcomes: &[Outcome]) -> Result<Claims, SqlError> {
        Claims::read(outcome(outcomes, outcomes.len().saturating_sub(3))?)
    }

    /// The page after it.
    pub(crate) fn following(&self, outcomes: &[Outcome]) -> Result<Page, SqlError> {
        self.walk.page(outcomes, outcomes.len().saturating_sub(2))
    }
}
