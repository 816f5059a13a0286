//! Reading the archive back: events that the ledger does not have are put in again as they were, and, if an operator
//! wishes, all events of the object are sent to topics once more.
//!
//! Restoring the same object twice, or once more after it died in the middle, puts nothing in twice and sends nothing
//! twice: an event that is there stays as it is, and a dispatch remembers which object had it repeated.

use serde::Deserialize;

use super::gzip::Lines;
use super::line::{Line, VERSION};
use super::payloads::archive_key;
use super::reinsert::{Page, read_present};
use super::{ARCHIVE_PREFIX, LOG_RESTORE};
use crate::event::{is_event_id, is_tenant_id};
use crate::ids::{payload_hash, stable_hash};
use crate::incident::Operation;
use crate::ledger::{Ledger, batch_with_retry, outcome};
use crate::limits::{REPLAY_TOPICS_MAX, RESTORE_PAGE_BYTES_MAX, RESTORE_PAGE_MAX};
use crate::payload::blob_key;
use crate::ports::{BlobError, BlobKeeping, Listing, Sql, SqlError, Statement};
use crate::time::is_day;
use crate::topic::Topic;

/// What the names of the archive's parts end with.
const PART_SUFFIX: &str = ".ndjson.gz";

/// What restoring needs of the world.
pub struct Restorer<'a, S, B> {
    /// Where events go.
    pub ledger: &'a Ledger<S>,
    /// Where the archive is.
    pub blobs: &'a B,
}

/// What came of restoring an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Events that were put in.
    pub restored: u64,
    /// Events that were there already.
    pub present: u64,
    /// Dispatches that are sent once more.
    pub replayed: u64,
}

/// Why an object was not restored, or not all of it. What was restored stays, and the same call goes on where it stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The request names no day or no part of the archive.
    #[error("{0}")]
    Invalid(&'static str),
    /// There is no such object.
    #[error("there is no such object in the archive")]
    NotFound,
    /// The object is not what the gateway writes.
    #[error("line {line} of the object cannot be restored: {problem}")]
    Damaged {
        /// Which line, counting from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The bucket did not answer.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The ledger did not answer.
    #[error(transparent)]
    Sql(#[from] SqlError),
}

#[derive(Deserialize)]
struct Counts {
    restored: u64,
    replayed: u64,
}

impl<S: Sql, B: BlobKeeping> Restorer<'_, S, B> {
    /// Lists the objects of a day, `YYYY-MM-DD`, that come after the key `after`.
    pub async fn list(&self, day: &str, after: &str, limit: usize) -> Result<Listing, RestoreError> {
        if !is_day(day) {
            return Err(RestoreError::Invalid("a day is written as 2026-01-31"));
        }
        Ok(self.blobs.list(&format!("{ARCHIVE_PREFIX}{day}/"), after, limit).await?)
    }

    /// Restores the object `key`, and has its events sent to `topics`. The operation's id must be unique to the call.
    pub async fn restore(
        &self,
        key: &str,
        topics: &[Topic],
        op: &Operation<'_>,
    ) -> Result<Restored, RestoreError> {
        if !is_part(key) {
            return Err(RestoreError::Invalid(
                "an object of the archive is called events/<day>/…/part-….ndjson.gz",
            ));
        }
        if topics.len() > REPLAY_TOPICS_MAX {
            return Err(RestoreError::Invalid("that is more topics than a replay may name"));
        }
        let object = self.blobs.get(key).await?.ok_or(RestoreError::NotFound)?;
        let log = vec![op.id.into(), op.now.into(), op.actor.into(), op.note.unwrap_or(key).into()];
        batch_with_retry(self.ledger.shard(0), vec![Statement::new(LOG_RESTORE, log)]).await?;
        let replay_of = format!("arc_{}", stable_hash(&[key]));
        let (mut restored, mut page, mut bytes) = (Restored::default(), Vec::new(), 0);
        for (at, text) in Lines::of(&object).enumerate() {
            let damaged = |problem: String| RestoreError::Damaged { line: at + 1, problem };
            let text = text.map_err(|error| damaged(error.to_string()))?;
            page.push(parse(&text).map_err(damaged)?);
            bytes += text.len();
            if page.len() == RESTORE_PAGE_MAX || bytes >= RESTORE_PAGE_BYTES_MAX {
                self.restore_page(std::mem::take(&mut page), topics, &replay_of, op, &mut restored).await?;
                bytes = 0;
            }
        }
        self.restore_page(page, topics, &replay_of, op, &mut restored).await?;
        Ok(restored)
    }

    async fn restore_page(
        &self,
        lines: Vec<Line>,
        topics: &[Topic],
        replay_of: &str,
        op: &Operation<'_>,
        restored: &mut Restored,
    ) -> Result<(), RestoreError> {
        for (shard, lines) in self.ledger.by_shard(lines, |line| &line.tenant_id) {
            let shard = self.ledger.shard(shard);
            let present = read_present(shard, &lines).await?;
            let is_present = |line: &Line| present.contains(&(line.tenant_id.clone(), line.event_id.clone()));
            let (total, mut absent) = (lines.len() as u64, Vec::new());
            for line in lines.iter().filter(|line| !is_present(line)) {
                absent.push(self.with_payload(line.clone(), op).await?);
            }
            let page = Page { absent: &absent, all: &lines, topics, replay_of, token: op.id, now: op.now };
            let (statements, counts_at) = page.statements()?;
            let outcomes = batch_with_retry(shard, statements).await?;
            let counts = outcome(&outcomes, counts_at)?.decode::<Counts>()?.pop();
            let counts = counts.unwrap_or(Counts { restored: 0, replayed: 0 });
            restored.restored += counts.restored;
            restored.present += total.saturating_sub(counts.restored);
            restored.replayed += counts.replayed;
        }
        Ok(())
    }

    /// Brings a large payload back to where the ledger refers to it, as if it had arrived today.
    async fn with_payload(&self, mut line: Line, op: &Operation<'_>) -> Result<Line, RestoreError> {
        if let Some(archived) = &line.payload_ref {
            let key = blob_key(&line.payload_hash, op.now);
            if !self.blobs.copy(archived, &key).await? {
                return Err(BlobError(format!("the archive has lost {archived}")).into());
            }
            line.payload_ref = Some(key);
        }
        Ok(line)
    }
}

fn is_part(key: &str) -> bool {
    let day = key.strip_prefix(ARCHIVE_PREFIX).and_then(|rest| rest.split_once('/')).map(|(day, _)| day);
    day.is_some_and(is_day) && key.ends_with(PART_SUFFIX)
}

/// Reads a line and checks everything that the ledger relies on.
fn parse(text: &str) -> Result<Line, String> {
    let line: Line = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if line.v != VERSION {
        return Err(format!("version {} is not known to this release (it reads {VERSION})", line.v));
    }
    if !is_tenant_id(&line.tenant_id) || !is_event_id(&line.event_id) {
        return Err("it names no event".to_owned());
    }
    let intact = match (&line.payload_json, &line.payload_ref) {
        (Some(text), None) => payload_hash(text) == line.payload_hash,
        (None, Some(key)) => *key == archive_key(&line.payload_hash),
        _ => false,
    };
    if !intact {
        return Err("its payload is not the one that was recorded".to_owned());
    }
    if line.dispatches.iter().any(|d| d.status.is_live()) || line.incidents.iter().any(|i| !i.is_closed()) {
        return Err("it holds what is not at rest".to_owned());
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../../tests/golden/archive-v1.ndjson");

    #[test]
    fn golden_lines_are_read_and_written_to_the_byte() {
        for golden in GOLDEN.lines() {
            let line = parse(golden).unwrap();
            assert_eq!(serde_json::to_string(&line).unwrap(), golden);
        }
        assert_eq!(GOLDEN.lines().count(), 2);
    }

    #[test]
    fn what_the_gateway_would_not_have_written_is_refused() {
        let golden = GOLDEN.lines().next().unwrap();
        for (from, to, part) in [
            ("\"v\":1", "\"v\":2", "version 2"),
            ("\"tenantId\":\"acme\"", "\"tenantId\":\"\"", "names no event"),
            ("1.0", "1.1", "payload"),
            ("\"payloadRef\":null", "\"payloadRef\":\"events/payloads/x\"", "payload"),
            ("\"status\":\"dead_lettered\"", "\"status\":\"pending\"", "at rest"),
            ("\"status\":\"ignored\"", "\"status\":\"open\"", "at rest"),
            ("\"status\":\"ignored\"", "\"status\":\"lost\"", "unknown variant"),
        ] {
            let text = golden.replacen(from, to, 1);
            assert_ne!(text, golden, "{from}");
            let problem = parse(&text).unwrap_err();
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn only_parts_of_the_archive_are_restored() {
        assert!(is_part("events/2026-01-01/shard-00/part-1-a.ndjson.gz"));
        for key in ["events/payloads/x.ndjson.gz", "audit/2026-01-01/x.ndjson.gz", "events/2026-01-01/x", ""]
        {
            assert!(!is_part(key), "{key}");
        }
    }
}
