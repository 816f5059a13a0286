//! Removing kept requests and counts whose time is over.

use super::key::time_prefix;
use crate::ledger::{Ledger, batch_with_retry, outcome};
use crate::limits::{REJECTED_EXPIRED_MAX, REJECTION_COUNTS_DAYS};
use crate::ports::{BlobError, BlobKeeping, Sql, SqlError, Statement};
use crate::time::Timestamp;

/// Objects that a bucket lists and deletes in one call.
const AT_ONCE: usize = 1_000;
const DAY_MS: i64 = 24 * 3_600_000;

/// Deletes counts.
pub const FORGET_COUNTS: &str = "DELETE FROM rejections WHERE minute < ?1";

/// What one run removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Kept requests.
    pub requests: u64,
    /// Rows of counts.
    pub counts: u64,
}

/// Why a run did not come to its end; the next one goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpireError {
    /// The bucket.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The ledger.
    #[error(transparent)]
    Sql(#[from] SqlError),
}

/// Removes requests that are older than `days`, and counts that are older than
/// [`REJECTION_COUNTS_DAYS`]. Two calls per thousand requests, and one more.
pub async fn expire<S: Sql, B: BlobKeeping>(
    ledger: &Ledger<S>,
    blobs: &B,
    now: Timestamp,
    days: i64,
) -> Result<Expired, ExpireError> {
    let mut expired = Expired::default();
    let oldest = time_prefix(now.plus_ms(days.saturating_mul(-DAY_MS)));
    while expired.requests < REJECTED_EXPIRED_MAX as u64 {
        let listing = blobs.list("", &oldest, AT_ONCE).await?;
        let keys: Vec<_> = listing.objects.into_iter().map(|object| object.key).collect();
        if !keys.is_empty() {
            blobs.delete(&keys).await?;
        }
        expired.requests += keys.len() as u64;
        if !listing.more {
            break;
        }
    }
    let before = now.plus_ms(-REJECTION_COUNTS_DAYS * DAY_MS);
    let forget = Statement::new(FORGET_COUNTS, vec![before.into()]);
    let outcomes = batch_with_retry(ledger.shard(0), vec![forget]).await?;
    expired.counts = outcome(&outcomes, 0)?.changes;
    Ok(expired)
}
