//! Deleting records that have served: alerts that were sent long ago, and replays of many that ended long ago. What
//! operators did stays in `ops_log`.

use super::period::days_before;
use super::{Retained, Retention, texts};
use crate::ledger::{batch_with_retry, json_rows, outcome};
use crate::limits::{ALERT_GIVE_UP_MS, ALERT_KEPT_MS, RETENTION_RECORDS_MAX};
use crate::ports::{BlobKeeping, Clock, Sql, SqlError, Statement};

/// Gives up alerts that nobody serves: their sink is not configured any more.
pub const GIVE_UP_ALERTS: &str = "
    UPDATE alerts SET next_retry_at = NULL, last_error = coalesce(last_error, 'its sink is not configured')
     WHERE next_retry_at IS NOT NULL AND created_at < ?1";

/// Deletes alerts that were sent or given up.
pub const DELETE_ALERTS: &str = "
    DELETE FROM alerts WHERE alert_id IN (
      SELECT alert_id FROM alerts WHERE next_retry_at IS NULL AND created_at < ?1 LIMIT ?2)";

/// Finds replays that are over.
pub const ENDED_REPLAYS: &str = "
    SELECT replay_id AS text FROM replays WHERE status IN ('completed', 'cancelled') AND updated_at < ?1 LIMIT ?2";

/// Deletes what a shard has counted of replays.
pub const DELETE_PROGRESS: &str =
    "DELETE FROM replay_progress WHERE replay_id IN (SELECT value FROM json_each(?1))";

/// Deletes replays.
pub const DELETE_REPLAYS: &str = "DELETE FROM replays WHERE replay_id IN (SELECT value FROM json_each(?1))";

impl<S: Sql, B: BlobKeeping, C: Clock> Retention<'_, S, B, C> {
    /// Deletes old records. A replay goes last, so that one whose counts could not be deleted everywhere is found again.
    pub(super) async fn delete_records(&self, retained: &mut Retained) -> Result<(), SqlError> {
        let now = self.clock.now();
        let limit = i64::try_from(RETENTION_RECORDS_MAX).unwrap_or(i64::MAX);
        let ended = days_before(now, self.periods.default_days());
        // A day more than the alerter itself takes, which also writes down why.
        let given_up = now.plus_ms(-ALERT_GIVE_UP_MS - 86_400_000);
        let statements = vec![
            Statement::new(GIVE_UP_ALERTS, vec![given_up.into()]),
            Statement::new(DELETE_ALERTS, vec![now.plus_ms(-ALERT_KEPT_MS).into(), limit.into()]),
            Statement::new(ENDED_REPLAYS, vec![ended.into(), limit.into()]),
        ];
        let outcomes = batch_with_retry(self.ledger.shard(0), statements).await?;
        retained.alerts += outcome(&outcomes, 1)?.changes;
        let ids = texts(outcome(&outcomes, 2)?)?;
        if ids.is_empty() {
            return Ok(());
        }
        let list = json_rows(&ids)?;
        for (_, shard) in self.ledger.shards() {
            batch_with_retry(shard, vec![Statement::new(DELETE_PROGRESS, vec![list.as_str().into()])])
                .await?;
        }
        batch_with_retry(self.ledger.shard(0), vec![Statement::new(DELETE_REPLAYS, vec![list.into()])])
            .await?;
        retained.replays += ids.len() as u64;
        Ok(())
    }
}
