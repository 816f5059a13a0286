//! Retention: events that are old and done leave the ledger for the archive in R2, and nothing else goes before it is
//! there.
//!
//! A run goes through the shards one after the other, tenant by tenant, oldest events first. What it may take (nothing
//! under way, no incident open, left alone for a while) it writes to the archive as gzip NDJSON, in parts of one day and
//! one shard whose keys follow from their content. Only then does it delete, in one batch, and with every condition asked
//! once more, so that an event that somebody has begun to replay meanwhile stays. A run that dies anywhere leaves at most
//! a part that the next run writes again under the same key, or, if an event stays after all, a part that tells of an
//! earlier time as well.
//!
//! Large payloads are objects of their own, shared by events of the same content. Before a part refers to one, it is
//! copied to `events/payloads/<hash>`: the archive is then complete under one prefix, on which the bucket can have rules
//! of its own, and the gateway's objects can go as soon as no row refers to them. See [`payloads`].
//!
//! [`Restorer`] reads parts back.

mod archive;
mod delete;
mod gzip;
mod line;
mod payloads;
mod period;
mod read;
mod records;
mod reinsert;
mod restore;
mod scan;

use serde::Deserialize;

use crate::lane::{Lane, is_ours};
use crate::ledger::{Ledger, batch_with_retry, outcome};
use crate::ports::{BlobError, BlobKeeping, Clock, Outcome, Sql, SqlError, Statement};
use crate::time::Timestamp;

pub use self::delete::{COUNT_LEFT, DELETE_DISPATCHES, DELETE_EVENTS, DELETE_INCIDENTS};
pub use self::payloads::READ_REFERENCED;
pub use self::period::{InvalidPeriods, Periods};
pub use self::read::{READ_DISPATCHES, READ_EVENTS, READ_INCIDENTS};
pub use self::records::{DELETE_ALERTS, DELETE_PROGRESS, DELETE_REPLAYS, ENDED_REPLAYS, GIVE_UP_ALERTS};
pub use self::reinsert::{
    COUNT_RESTORED, INSERT_DISPATCHES, INSERT_EVENTS, INSERT_INCIDENTS, INSERT_REPEATED, LOG_RESTORE,
    READ_PRESENT, REPEAT, RETRY_REPEATED,
};
pub use self::restore::{RestoreError, Restored, Restorer};
pub use self::scan::{FIND_TENANTS, SCAN};

/// Where the archive is.
pub const ARCHIVE_PREFIX: &str = "events/";

/// The lane that a run owns, in the first shard.
const LANE: &str = "retention";
/// What the calls of a run that began just before its deadline may still take.
const LANE_MARGIN_MS: i64 = 5 * 60_000;

/// Reads how far something has come.
pub const READ_BOOKMARK: &str = "SELECT position AS text FROM bookmarks WHERE name = ?1";

/// Writes down how far something has come.
pub const WRITE_BOOKMARK: &str = "
    INSERT INTO bookmarks (name, position) VALUES (?1, ?2)
    ON CONFLICT (name) DO UPDATE SET position = excluded.position WHERE position <> excluded.position";

/// What retention needs of the world.
pub struct Retention<'a, S, B, C> {
    /// Where events are.
    pub ledger: &'a Ledger<S>,
    /// Where payloads and the archive are.
    pub blobs: &'a B,
    /// The time.
    pub clock: &'a C,
    /// How long events are kept.
    pub periods: &'a Periods,
}

/// Something that went wrong. What it concerns is left for the next run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RetentionError {
    /// A shard.
    #[error("shard {0}: {1}")]
    Shard(usize, SqlError),
    /// The first shard, in what belongs to no tenant.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// The bucket.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// A payload that an event refers to is missing. The event stays.
    #[error("the payload {0} of an old event is missing, so the event cannot be archived")]
    Missing(String),
}

/// What one run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    /// Whether another run was at it, so that this one left everything alone.
    pub busy: bool,
    /// Events that were archived and then deleted.
    pub events: u64,
    /// Objects that were written to the archive, and what they weigh.
    pub parts: u64,
    /// The weight of these objects, in bytes.
    pub bytes: u64,
    /// Old events that were looked at and stay, because something about them is open or was touched lately.
    pub kept: u64,
    /// Payloads that nothing referred to any more.
    pub payloads: u64,
    /// Alerts that were sent or given up long ago.
    pub alerts: u64,
    /// Replays that ended long ago.
    pub replays: u64,
    /// Whether everything was gone through; otherwise the next run goes on.
    pub finished: bool,
    /// What went wrong.
    pub errors: Vec<RetentionError>,
}

/// How much one shard may still do.
struct Allowance {
    deadline: Timestamp,
    events: u64,
}

impl<S: Sql, B: BlobKeeping, C: Clock> Retention<'_, S, B, C> {
    /// Archives and deletes until everything is gone through, `deadline` has passed or `events_max` events have been looked
    /// at. `token` is random and unique to the run.
    pub async fn run(&self, token: &str, deadline: Timestamp, events_max: u64) -> Retained {
        let mut retained = Retained::default();
        let lane = Lane::new(LANE, token);
        match self.begin(&lane, deadline).await {
            Ok(true) => {}
            Ok(false) => return Retained { busy: true, ..retained },
            Err(error) => return Retained { errors: vec![error.into()], ..retained },
        }
        retained.finished = self.go_through_shards(deadline, events_max, &mut retained).await;
        match self.collect_payloads(deadline, &mut retained).await {
            Ok(finished) => retained.finished &= finished,
            Err(error) => retained.errors.push(error),
        }
        if let Err(error) = self.delete_records(&mut retained).await {
            retained.errors.push(error.into());
        }
        if let Err(error) = batch_with_retry(self.ledger.shard(0), vec![lane.release()]).await {
            retained.errors.push(error.into());
        }
        retained.finished &= retained.errors.is_empty();
        retained
    }

    async fn begin(&self, lane: &Lane, deadline: Timestamp) -> Result<bool, SqlError> {
        let take = lane.take(self.clock.now(), deadline.plus_ms(LANE_MARGIN_MS));
        let outcomes = batch_with_retry(self.ledger.shard(0), vec![take]).await?;
        outcome(&outcomes, 0).map(is_ours)
    }

    /// All shards, each with its share of what is left. The first one is another each day, so that none is always last.
    async fn go_through_shards(&self, deadline: Timestamp, events_max: u64, retained: &mut Retained) -> bool {
        let shards = self.ledger.shards().count();
        let (mut finished, mut events_left) = (true, events_max);
        let today = (self.clock.now().unix_ms() / 86_400_000).unsigned_abs() as usize;
        for at in 0..shards {
            let number = (today + at) % shards;
            let (now, shards_left) = (self.clock.now(), (shards - at) as u64);
            let time_left = (deadline.unix_ms() - now.unix_ms()).max(0) / shards_left as i64;
            let mut allowance =
                Allowance { deadline: now.plus_ms(time_left), events: events_left / shards_left };
            let share = allowance.events;
            match self.go_through_shard(number, &mut allowance, retained).await {
                Ok(all) => finished &= all,
                Err(error) => {
                    retained.errors.push(error);
                    finished = false;
                }
            }
            events_left -= share - allowance.events;
        }
        finished
    }
}

/// The statement that reads a bookmark.
fn read_bookmark(name: &str) -> Statement {
    Statement::new(READ_BOOKMARK, vec![name.into()])
}

/// The statement that writes a bookmark; an empty one means that the next run begins at the beginning.
fn write_bookmark(name: &str, position: &str) -> Statement {
    Statement::new(WRITE_BOOKMARK, vec![name.into(), position.into()])
}

/// The position in the outcome of [`read_bookmark`].
fn bookmark(outcome: &Outcome) -> Result<String, SqlError> {
    Ok(texts(outcome)?.pop().unwrap_or_default())
}

/// Rows that have one column, called `text`.
fn texts(outcome: &Outcome) -> Result<Vec<String>, SqlError> {
    #[derive(Deserialize)]
    struct Row {
        text: String,
    }
    Ok(outcome.decode::<Row>()?.into_iter().map(|row| row.text).collect())
}
