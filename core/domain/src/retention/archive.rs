//! From events that may go to objects of the archive, and then out of the ledger.

use serde::Serialize;

use super::delete::delete;
use super::gzip::compress;
use super::payloads::{archive_key, copy_to_archive};
use super::read::{Whole, read};
use super::{ARCHIVE_PREFIX, Retained, Retention, RetentionError};
use crate::ids::stable_hash;
use crate::limits::ARCHIVE_PART_BYTES_MAX;
use crate::ports::{BlobError, BlobKeeping, Clock, Sql};
use crate::time::Timestamp;

/// An event that looked as if it might go.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Candidate {
    pub tenant_id: String,
    pub event_id: String,
    pub created_at: Timestamp,
    #[serde(skip)]
    pub touched: Timestamp,
    #[serde(skip)]
    pub bytes: u64,
}

impl<S: Sql, B: BlobKeeping, C: Clock> Retention<'_, S, B, C> {
    /// Archives a page of one shard and deletes what is archived.
    pub(super) async fn archive(
        &self,
        number: usize,
        candidates: Vec<Candidate>,
        retained: &mut Retained,
    ) -> Result<(), RetentionError> {
        for part in parts(candidates) {
            self.archive_part(number, &part, retained).await?;
        }
        Ok(())
    }

    async fn archive_part(
        &self,
        number: usize,
        part: &[Candidate],
        retained: &mut Retained,
    ) -> Result<(), RetentionError> {
        let failed = |error| RetentionError::Shard(number, error);
        let shard = self.ledger.shard(number);
        let events = read(shard, part).await.map_err(failed)?;
        let events = self.keep_payloads(events, retained).await?;
        retained.kept += (part.len() - events.len()) as u64;
        let (Some(first), lines) = (part.first(), lines(&events)?) else { return Ok(()) };
        if lines.is_empty() {
            return Ok(());
        }
        let object = compress(&lines).map_err(|error| BlobError(error.to_string()))?;
        let bytes = object.len() as u64;
        self.blobs.put(&part_key(number, first.created_at, &lines), object).await?;
        retained.parts += 1;
        retained.bytes += bytes;
        let deleted = delete(shard, &events).await.map_err(failed)?;
        retained.events += deleted;
        retained.kept += (events.len() as u64).saturating_sub(deleted);
        Ok(())
    }

    /// Brings large payloads to where the archive refers to them. An event whose payload is nowhere is not archived.
    async fn keep_payloads(
        &self,
        events: Vec<Whole>,
        retained: &mut Retained,
    ) -> Result<Vec<Whole>, RetentionError> {
        let mut kept = Vec::with_capacity(events.len());
        for mut event in events {
            if let Some(key) = &event.line.payload_ref {
                if !copy_to_archive(self.blobs, key, &event.line.payload_hash).await? {
                    retained.errors.push(RetentionError::Missing(key.clone()));
                    continue;
                }
                event.line.payload_ref = Some(archive_key(&event.line.payload_hash));
            }
            kept.push(event);
        }
        Ok(kept)
    }
}

/// Puts candidates into the order of time and cuts it at the end of each day, and wherever an object would be too large.
fn parts(mut candidates: Vec<Candidate>) -> Vec<Vec<Candidate>> {
    candidates.sort_unstable_by(|a, b| {
        (a.created_at, &a.tenant_id, &a.event_id).cmp(&(b.created_at, &b.tenant_id, &b.event_id))
    });
    let (mut parts, mut part, mut bytes) = (Vec::new(), Vec::<Candidate>::new(), 0_u64);
    for candidate in candidates {
        if let Some(first) = part.first() {
            let is_of_another_day = first.created_at.day() != candidate.created_at.day();
            if is_of_another_day || bytes + candidate.bytes > ARCHIVE_PART_BYTES_MAX {
                parts.push(std::mem::take(&mut part));
                bytes = 0;
            }
        }
        bytes += candidate.bytes;
        part.push(candidate);
    }
    parts.extend((!part.is_empty()).then_some(part));
    parts
}

fn lines(events: &[Whole]) -> Result<Vec<String>, BlobError> {
    let line = |event: &Whole| serde_json::to_string(&event.line).map_err(|e| BlobError(e.to_string()));
    events.iter().map(line).collect()
}

/// `events/<day>/shard-<NN>/part-<firstMs>-<hash>.ndjson.gz`. The hash is over the lines, so another state of the same
/// events is another object, and the same state the same.
fn part_key(shard: usize, first: Timestamp, lines: &[String]) -> String {
    let (day, first_ms, hash) = (first.day(), first.unix_ms(), stable_hash(lines));
    format!("{ARCHIVE_PREFIX}{day}/shard-{shard:02}/part-{first_ms}-{hash}.ndjson.gz")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 86_400_000;

    fn candidate(id: &str, at_ms: i64, bytes: u64) -> Candidate {
        let (created_at, touched) = (Timestamp::from_unix_ms(at_ms), Timestamp::from_unix_ms(0));
        let (tenant_id, event_id) = ("acme".to_owned(), id.to_owned());
        Candidate { tenant_id, event_id, created_at, touched, bytes }
    }

    #[test]
    fn a_part_is_of_one_day_and_not_too_large() {
        let large = ARCHIVE_PART_BYTES_MAX / 2 + 1;
        let page = vec![
            candidate("d", DAY_MS, 1),
            candidate("c", DAY_MS - 1, large),
            candidate("b", 5, large),
            candidate("a", 5, 1),
            candidate("e", DAY_MS + 1, 2 * ARCHIVE_PART_BYTES_MAX),
            candidate("f", DAY_MS + 2, 1),
        ];
        let parts = parts(page);
        let ids: Vec<String> =
            parts.iter().map(|part| part.iter().map(|c| c.event_id.as_str()).collect()).collect();
        assert_eq!(ids, ["ab", "c", "d", "e", "f"]);
    }

    #[test]
    fn a_key_follows_from_shard_time_and_content() {
        let lines = ["{}".to_owned()];
        let key = part_key(7, Timestamp::from_unix_ms(1_767_237_943_042), &lines);
        assert!(key.starts_with("events/2026-01-01/shard-07/part-1767237943042-"), "{key}");
        assert!(key.ends_with(".ndjson.gz"));
        assert_ne!(key, part_key(7, Timestamp::from_unix_ms(1_767_237_943_042), &["{} ".to_owned()]));
    }
}
