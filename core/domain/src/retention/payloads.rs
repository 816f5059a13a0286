//! Large payloads: copies for the archive, and deleting the objects that nothing refers to any more.
//!
//! An object must not go while an accepting call is about to refer to it, and neither the bucket nor the ledger can be
//! asked that in one step. So it can never happen: the key of an object holds the day on which its payload arrived
//! ([`blob_key`](crate::payload::blob_key)), and a call refers to objects of its own day only. Of a day that is over
//! there can be fewer references but not more (an incident refers to what its event, in the same shard, refers to, and a
//! restored event to an object of the day on which it is restored). So once every shard has said that it does not refer
//! to an object of a past day, at whatever moment each has said it, nobody ever will, and it may go. A whole day lies in
//! between for clocks that differ and calls that are slow.

use std::collections::HashSet;

use super::{
    ARCHIVE_PREFIX, Retained, Retention, RetentionError, bookmark, read_bookmark, texts, write_bookmark,
};
use crate::join::join_all;
use crate::ledger::{batch_with_retry, json_rows, outcome};
use crate::limits::RETENTION_PAYLOADS_MAX;
use crate::payload::{BLOB_PREFIX, blob_day};
use crate::ports::{BlobError, BlobKeeping, Clock, Sql, Statement};
use crate::time::Timestamp;

/// Reads which of these objects a shard refers to.
pub const READ_REFERENCED: &str = "
    SELECT value AS text FROM json_each(?1) k
     WHERE EXISTS (SELECT 1 FROM event_ledger l WHERE l.payload_ref = k.value)";

/// How far the objects were gone through.
const BOOKMARK: &str = "payloads";
const DAY_MS: i64 = 86_400_000;

/// Where the archive keeps a large payload. Equal payloads share an object, whoever's they are.
pub(super) fn archive_key(payload_hash: &str) -> String {
    format!("{ARCHIVE_PREFIX}payloads/{payload_hash}")
}

/// Copies a payload to the archive; `false` if it is in neither place. The copy is made even if there is one already, which
/// makes it as young as the youngest part that refers to it, should the bucket have rules about age.
pub(super) async fn copy_to_archive<B: BlobKeeping>(
    blobs: &B,
    key: &str,
    payload_hash: &str,
) -> Result<bool, BlobError> {
    blobs.copy(key, &archive_key(payload_hash)).await
}

/// The first day whose objects stay: yesterday.
fn first_day_that_stays(now: Timestamp) -> String {
    now.plus_ms(-DAY_MS).day()
}

impl<S: Sql, B: BlobKeeping, C: Clock> Retention<'_, S, B, C> {
    /// Deletes objects of past days that no shard refers to, from where the last run stopped. Answers whether it has come
    /// to the end.
    pub(super) async fn collect_payloads(
        &self,
        deadline: Timestamp,
        retained: &mut Retained,
    ) -> Result<bool, RetentionError> {
        let first = self.ledger.shard(0);
        let outcomes = batch_with_retry(first, vec![read_bookmark(BOOKMARK)]).await?;
        let begun = bookmark(outcome(&outcomes, 0)?)?;
        let (mut position, first_to_stay) = (begun.clone(), first_day_that_stays(self.clock.now()));
        let finished = loop {
            if self.clock.now() >= deadline {
                break false;
            }
            let listing = self.blobs.list(BLOB_PREFIX, &position, RETENTION_PAYLOADS_MAX).await?;
            let keys: Vec<String> = listing.objects.into_iter().map(|object| object.key).collect();
            let Some(last) = keys.last().cloned() else { break true };
            let over = blob_day(&last).is_some_and(|day| day >= first_to_stay.as_str());
            let is_past = |key: &String| blob_day(key).is_some_and(|day| day < first_to_stay.as_str());
            self.delete_unreferenced(keys.into_iter().filter(is_past).collect(), retained).await?;
            position = last;
            if over || !listing.more {
                break true;
            }
        };
        let position = if finished { "" } else { &position };
        if position != begun {
            batch_with_retry(first, vec![write_bookmark(BOOKMARK, position)]).await?;
        }
        Ok(finished && begun.is_empty())
    }

    /// Asks every shard. One that does not answer keeps all.
    async fn delete_unreferenced(
        &self,
        keys: Vec<String>,
        retained: &mut Retained,
    ) -> Result<(), RetentionError> {
        if keys.is_empty() {
            return Ok(());
        }
        let list = json_rows(&keys)?;
        let questions = self.ledger.shards().map(async |(number, shard)| {
            let ask = vec![Statement::new(READ_REFERENCED, vec![list.as_str().into()])];
            let answer = async { texts(outcome(&batch_with_retry(shard, ask).await?, 0)?) };
            answer.await.map_err(|error| RetentionError::Shard(number, error))
        });
        let mut referenced = HashSet::new();
        for answer in join_all(questions).await {
            referenced.extend(answer?);
        }
        let unreferenced: Vec<String> = keys.into_iter().filter(|key| !referenced.contains(key)).collect();
        if !unreferenced.is_empty() {
            self.blobs.delete(&unreferenced).await?;
        }
        retained.payloads += unreferenced.len() as u64;
        Ok(())
    }
}
