//! The archive of dead letters: from what lies in a dead-letter queue to an incident, and only then out of the queue.
//!
//! A letter costs one round trip together with all others of its shard: it brings its dispatch to rest, if nobody has yet,
//! reports the failure, and takes the dispatch out of the sweeper's sight. The same letter again changes nothing. Whatever
//! cannot be connected with a dispatch is kept as it came, as an incident of its own in the first shard.
//!
//! A letter that the ledger or the blob store did not take stays in its queue. If even the queue's last attempt fails, the
//! queue drops it; a dispatch that is waiting for its letter is due again by then, and the sweeper reports it from the ledger.

mod sorting;

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;

use self::sorting::{Foreign, Ours, Sorted, sort};
use crate::inbox::{Disposition, RawBody};
use crate::incident::{Report, report, report_foreign};
use crate::join::join_all;
use crate::ledger::{DispatchKey, Ledger, batch_with_retry, json_rows, outcome};
use crate::limits::{ARCHIVE_RETRY_BASE_SECONDS, ARCHIVE_RETRY_SECONDS_MAX, REPORTS_PER_STATEMENT_MAX};
use crate::ports::{Blobs, Sql, SqlError, Statement};
use crate::states::{DispatchEvent, DispatchState, sql_states_before};
use crate::time::Timestamp;

/// Brings the dispatches of letters to rest: those that nobody has marked yet, because the platform itself has moved the
/// message or the consumer's mark got lost, and those that were waiting for their letter. A lease does not count any more.
pub static LAY_TO_REST: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE event_dispatches
            SET status = '{dead_lettered}', next_retry_at = NULL, claimed_by = NULL, lease = NULL, lease_holder = NULL,
                starts = 0, last_error = coalesce(k.value ->> 'error', last_error), updated_at = ?2
           FROM json_each(?1) k
          WHERE tenant_id = k.value ->> 'tenant_id' AND event_id = k.value ->> 'event_id'
            AND topic = k.value ->> 'topic' AND replays = k.value ->> 'generation'
            AND next_retry_at IS NOT NULL AND status IN ({before}, '{dead_lettered}')",
        before = sql_states_before(DispatchEvent::DeadLetter),
        dead_lettered = DispatchState::DeadLettered.name(),
    )
});

/// Reads how the dispatches of letters stand after that.
pub const READ_LAID: &str = "
    SELECT d.tenant_id, d.event_id, d.topic, d.status, d.replays
      FROM json_each(?1) k
      JOIN event_dispatches d ON d.tenant_id = k.value ->> 'tenant_id' AND d.event_id = k.value ->> 'event_id'
                             AND d.topic = k.value ->> 'topic'";

/// What archiving needs of the world.
pub struct Archiver<'a, S, B> {
    /// Where incidents are kept.
    pub ledger: &'a Ledger<S>,
    /// Where bodies are kept that a row should not hold.
    pub blobs: &'a B,
}

/// A message of a dead-letter queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// Its body.
    pub body: RawBody,
    /// How often the queue has delivered it, this time included.
    pub attempts: u32,
}

/// What became of a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filing {
    /// The incident of its dispatch tells of it.
    Reported(Report),
    /// Its dispatch was delivered or repeated in the meantime, so it no longer says anything.
    Void(Report),
    /// It is not ours and is an incident of its own.
    Foreign {
        /// The incident.
        incident_id: String,
        /// What is wrong with the message.
        error: String,
    },
    /// It is not in the archive; why.
    Failed(String),
}

/// The end of one dead letter of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filed {
    /// What became of it.
    pub filing: Filing,
    /// What the queue is told.
    pub disposition: Disposition,
}

/// Something of a batch, with its place in it.
#[derive(Debug)]
struct Placed<T> {
    at: usize,
    item: T,
}

#[derive(Deserialize)]
struct LaidRow {
    #[serde(flatten)]
    key: DispatchKey,
    status: DispatchState,
    replays: u32,
}

/// How long a letter waits that could not be archived, `attempts` counting from 1: 15 seconds, 30, 60, … up to three hours.
pub fn retry_after_seconds(attempts: u32) -> u32 {
    let steps = attempts.saturating_sub(1);
    ARCHIVE_RETRY_BASE_SECONDS.saturating_mul(2_u32.saturating_pow(steps)).min(ARCHIVE_RETRY_SECONDS_MAX)
}

impl<S: Sql, B: Blobs> Archiver<'_, S, B> {
    /// Archives a batch of the dead-letter queue `queue` and answers for each letter, in order.
    pub async fn archive(&self, queue: &str, letters: Vec<Letter>, now: Timestamp) -> Vec<Filed> {
        let attempts: Vec<u32> = letters.iter().map(|letter| letter.attempts).collect();
        let (mut ours, mut foreign) = (Vec::new(), Vec::new());
        for (at, letter) in letters.into_iter().enumerate() {
            match sort(queue, letter.body) {
                Sorted::Ours(item) => ours.push(Placed { at, item }),
                Sorted::Foreign(item) => foreign.push(Placed { at, item }),
            }
        }
        let mut filings = self.file_ours(ours, &mut foreign, now).await;
        filings.extend(self.file_foreign(foreign, now).await);
        let filed = |(filing, attempts)| {
            let disposition = match filing {
                Filing::Failed(_) => Disposition::Retry { delay_seconds: retry_after_seconds(attempts) },
                _ => Disposition::Ack,
            };
            Filed { filing, disposition }
        };
        filings.into_values().zip(attempts).map(filed).collect()
    }

    /// Files what names a dispatch, all shards at once. What the ledger does not know joins the foreign ones.
    async fn file_ours(
        &self,
        ours: Vec<Placed<Ours>>,
        foreign: &mut Vec<Placed<Foreign>>,
        now: Timestamp,
    ) -> BTreeMap<usize, Filing> {
        let groups = self.ledger.by_shard(ours, |placed| &placed.item.report.key.tenant_id);
        let filing = groups.into_iter().map(|(shard, group)| {
            let shard = self.ledger.shard(shard);
            in_parts(group, async |part| report_ours(shard, part, now).await)
        });
        let mut filings = BTreeMap::new();
        for (part, answer) in join_all(filing).await.into_iter().flatten() {
            for Placed { at, item } in part {
                let filing = match &answer {
                    Err(error) => Filing::Failed(error.to_string()),
                    Ok(laid) => match laid.get(&item.report.key) {
                        Some(row) if row.tells_of(&item.report) => Filing::Reported(item.report),
                        Some(_) => Filing::Void(item.report),
                        None => {
                            foreign.push(Placed { at, item: item.into() });
                            continue;
                        }
                    },
                };
                filings.insert(at, filing);
            }
        }
        filings
    }

    /// Files what is not ours. A body is in the blob store before a row points there.
    async fn file_foreign(&self, foreign: Vec<Placed<Foreign>>, now: Timestamp) -> BTreeMap<usize, Filing> {
        let mut filings = BTreeMap::new();
        let stored = join_all(foreign.iter().map(|placed| self.store(&placed.item))).await;
        let mut kept = Vec::with_capacity(foreign.len());
        for (placed, stored) in foreign.into_iter().zip(stored) {
            match stored {
                Ok(()) => kept.push(placed),
                Err(error) => drop(filings.insert(placed.at, Filing::Failed(error))),
            }
        }
        let shard = self.ledger.shard(0);
        for (part, answer) in in_parts(kept, async |part| write_foreign(shard, part, now).await).await {
            filings.extend(part.into_iter().map(|Placed { at, item }| {
                let filing = match &answer {
                    Ok(()) => Filing::Foreign { incident_id: item.report().incident_id, error: item.error },
                    Err(error) => Filing::Failed(error.to_string()),
                };
                (at, filing)
            }));
        }
        filings
    }

    async fn store(&self, foreign: &Foreign) -> Result<(), String> {
        let Some(key) = foreign.blob_key() else { return Ok(()) };
        let bytes = foreign.body.as_bytes().to_vec();
        self.blobs.put(&key, bytes).await.map_err(|error| error.to_string())
    }
}

impl LaidRow {
    fn tells_of(&self, report: &Report) -> bool {
        let failed = matches!(self.status, DispatchState::DeadLettered | DispatchState::DlqAbandoned);
        failed && self.replays == report.generation
    }
}

async fn report_ours<S: Sql>(
    shard: &S,
    part: &[Placed<Ours>],
    now: Timestamp,
) -> Result<HashMap<DispatchKey, LaidRow>, SqlError> {
    let mut reports: Vec<Report> = part.iter().map(|placed| placed.item.report.clone()).collect();
    // The first report of a failure counts, and of several copies one may know more than the others.
    reports.sort_by_key(|report| report.error.is_none());
    let mut statements = Vec::new();
    for chunk in reports.chunks(REPORTS_PER_STATEMENT_MAX) {
        statements.push(Statement::new(&LAY_TO_REST, vec![json_rows(chunk)?.into(), now.into()]));
        statements.push(report(chunk, now)?);
    }
    let keys: Vec<_> = reports.iter().map(|report| &report.key).collect();
    let last = statements.len();
    statements.push(Statement::new(READ_LAID, vec![json_rows(&keys)?.into()]));
    let outcomes = batch_with_retry(shard, statements).await?;
    let rows = outcome(&outcomes, last)?.decode::<LaidRow>()?;
    Ok(rows.into_iter().map(|row| (row.key.clone(), row)).collect())
}

/// One statement each, so that none holds more than one large body.
async fn write_foreign<S: Sql>(shard: &S, part: &[Placed<Foreign>], now: Timestamp) -> Result<(), SqlError> {
    let statements = part.iter().map(|placed| report_foreign(&[placed.item.report()], now));
    let statements = statements.collect::<Result<Vec<_>, _>>()?;
    batch_with_retry(shard, statements).await.map(|_| ())
}

/// Runs a batch over all items. If the database refuses it, they are halved until the one at fault stands alone, so that it
/// holds up no other.
async fn in_parts<T, A>(
    items: Vec<T>,
    batch: impl AsyncFn(&[T]) -> Result<A, SqlError>,
) -> Vec<(Vec<T>, Result<A, SqlError>)> {
    let mut done = Vec::new();
    let mut parts = vec![items];
    while let Some(mut part) = parts.pop() {
        if part.is_empty() {
            continue;
        }
        match batch(&part).await {
            Err(SqlError::Constraint(_) | SqlError::Failed(_)) if part.len() > 1 => {
                let second = part.split_off(part.len() / 2);
                parts.extend([second, part]);
            }
            answer => done.push((part, answer)),
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{QUEUE_RETENTION_SECONDS_MAX, QUEUE_RETRIES_MAX};

    #[test]
    fn a_letter_outlasts_an_outage_of_eleven_days() {
        assert_eq!([1, 2, 3, 10, 11, 12].map(retry_after_seconds), [15, 30, 60, 7_680, 10_800, 10_800]);
        assert_eq!(retry_after_seconds(u32::MAX), ARCHIVE_RETRY_SECONDS_MAX);
        let total: u32 = (1..=QUEUE_RETRIES_MAX).map(retry_after_seconds).sum();
        assert!(total > 11 * 86_400 && total < QUEUE_RETENTION_SECONDS_MAX, "{total} seconds");
    }
}
