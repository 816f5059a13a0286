//! How many requests did not pass, by provider and reason.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::ledger::{Ledger, batch_with_retry, outcome};
use crate::ports::{Sql, SqlError, Statement};
use crate::time::Timestamp;

/// Adds up what all instances have counted from one moment to another.
pub const COUNT: &str = "
    SELECT provider, reason, sum(count) AS count FROM rejections WHERE minute >= ?1 AND minute < ?2
     GROUP BY provider, reason";

/// The rejected requests of one provider for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The provider.
    pub provider: String,
    /// The reason.
    pub reason: String,
    /// How many.
    pub count: u64,
}

/// The counts from the minute of `since` to that of `until`, most first. One round trip.
pub async fn counts<S: Sql>(
    ledger: &Ledger<S>,
    since: Timestamp,
    until: Timestamp,
) -> Result<Vec<Counted>, SqlError> {
    let statement = Statement::new(COUNT, vec![since.minute().into(), until.into()]);
    let mut counts: Vec<Counted> =
        outcome(&batch_with_retry(ledger.shard(0), vec![statement]).await?, 0)?.decode()?;
    counts.sort_by_key(|counted| Reverse(counted.count));
    Ok(counts)
}
