//! Counting rejected requests, in memory first: one row written for all of a minute, not one for each request, since anybody
//! can send as many as they like.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::ledger::{Ledger, batch_with_retry, json_rows};
use crate::ports::{Sql, SqlError, Statement};
use crate::time::Timestamp;

/// Writes what has been counted so far. Counts only grow, so an old batch that runs again undoes nothing.
pub const RECORD: &str = "
    INSERT INTO rejections (minute, provider, reason, counter, count)
    SELECT value ->> 'minute', value ->> 'provider', value ->> 'reason', ?2, value ->> 'count' FROM json_each(?1) WHERE true
    ON CONFLICT (minute, provider, reason, counter) DO UPDATE SET count = excluded.count WHERE count < excluded.count";

/// Minute, provider and reason.
type Place = (Timestamp, String, String);

/// The counts of one instance of a Worker.
#[derive(Debug, Default)]
pub struct Tally {
    counts: BTreeMap<Place, u64>,
    /// Whether something was counted since it was written last.
    is_fresh: bool,
}

#[derive(Serialize)]
struct Row<'a> {
    minute: Timestamp,
    provider: &'a str,
    reason: &'a str,
    count: u64,
}

impl<'a> Row<'a> {
    fn of(((minute, provider, reason), count): (&'a Place, &u64)) -> Self {
        Self { minute: *minute, provider, reason, count: *count }
    }
}

impl Tally {
    /// Counts one.
    pub fn add(&mut self, provider: &str, reason: &str, now: Timestamp) {
        let place = (now.minute(), provider.to_owned(), reason.to_owned());
        *self.counts.entry(place).or_default() += 1;
        self.is_fresh = true;
    }

    /// What there is to write, as JSON rows, or `None` if all of it is written. Minutes that are over are forgotten with it: if
    /// the write fails, what was counted since the one before is lost, which is better than an instance that fills up.
    pub fn take(&mut self, now: Timestamp) -> Result<Option<String>, SqlError> {
        if !std::mem::take(&mut self.is_fresh) {
            return Ok(None);
        }
        let rows: Vec<_> = self.counts.iter().map(Row::of).collect();
        let rows = json_rows(&rows)?;
        self.counts.retain(|(minute, _, _), _| *minute >= now.minute());
        Ok(Some(rows))
    }

    /// Writes rows as the counts of the instance `counter`. One round trip.
    pub async fn record<S: Sql>(ledger: &Ledger<S>, counter: &str, rows: String) -> Result<(), SqlError> {
        let statement = Statement::new(RECORD, vec![rows.into(), counter.into()]);
        batch_with_retry(ledger.shard(0), vec![statement]).await.map(|_| ())
    }
}
