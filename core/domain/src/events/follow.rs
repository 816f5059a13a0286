//! Following the ledger: what was recorded since one looked last, oldest first, and not one left out. A shard writes one
//! batch after another, so what is recorded later has the higher number.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::Events;
use super::cursor::{Cursor, Place};
use super::filter::{EventFilter, FILTER};
use super::list::as_integer;
use super::record::{COLUMNS, EventBrief, Row};
use crate::incident::OperationError;
use crate::join::join_all;
use crate::ledger::{batch_with_retry, outcome};
use crate::limits::{EVENT_PAGE_MAX, EVENTS_LOOKED_AT_MAX};
use crate::ports::{Sql, SqlError, Statement};
use crate::time::Timestamp;

/// The highest number of a shard.
pub const TOP: &str = "SELECT max(seq) AS seq FROM event_ledger";

/// Lists the events of a shard above a number, ?6, of which it looks at ?7. A tenant's are picked out of all.
pub static FOLLOW: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {COLUMNS} FROM event_ledger l
          WHERE l.seq > ?6 AND l.seq <= ?6 + ?7 AND {filter} AND (?9 IS NULL OR +l.tenant_id = ?9)
          ORDER BY l.seq LIMIT ?8",
        filter = *FILTER
    )
});

/// What has been recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Followed {
    /// The events, of each shard in the order in which they were recorded.
    pub events: Vec<EventBrief>,
    /// Where to go on.
    pub next_cursor: String,
    /// Whether there is more already.
    pub more: bool,
}

#[derive(Deserialize)]
struct TopRow {
    seq: Option<i64>,
}

struct Part {
    rows: Vec<Row>,
    place: Place,
    more: bool,
}

impl<S: Sql> Events<'_, S> {
    /// What was recorded since `cursor`, at most `limit` events of each shard. Without a cursor it begins at `since`, or now
    /// and with nothing. One call per shard, all at once.
    pub async fn follow(
        &self,
        filter: &EventFilter,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Followed, OperationError> {
        if !(1..=EVENT_PAGE_MAX).contains(&limit) {
            return Err(OperationError::invalid("limit", format!("must be 1 to {EVENT_PAGE_MAX}")));
        }
        let shards = self.shards_of(filter);
        let places = match (cursor, filter.since) {
            (Some(cursor), _) => Cursor::parse(cursor, shards.len())?.0,
            (None, Some(since)) => {
                let seqs = self.seqs_at(&shards, since).await?;
                seqs.into_iter().map(|seq| Some(place(seq.map_or(0, |seq| seq.saturating_sub(1))))).collect()
            }
            (None, None) => vec![None; shards.len()],
        };
        let parts = shards
            .iter()
            .zip(places)
            .map(async |(shard, place)| follow_shard(self.ledger.shard(*shard), filter, limit, place).await);
        let mut followed = Followed { events: Vec::new(), next_cursor: String::new(), more: false };
        let mut next = Vec::new();
        for part in join_all(parts).await {
            let part = part?;
            followed.events.extend(part.rows.into_iter().map(EventBrief::from));
            followed.more |= part.more;
            next.push(Some(part.place));
        }
        followed.next_cursor = Cursor(next).to_string();
        Ok(followed)
    }
}

/// A follower goes by number alone.
fn place(seq: i64) -> Place {
    Place { at: Timestamp::from_unix_ms(0), seq }
}

async fn follow_shard<S: Sql>(
    shard: &S,
    filter: &EventFilter,
    limit: usize,
    from: Option<Place>,
) -> Result<Part, SqlError> {
    let looked_at = as_integer(EVENTS_LOOKED_AT_MAX);
    let mut statements = vec![Statement::new(TOP, Vec::new())];
    if let Some(from) = from {
        let mut values = filter.values()?;
        values.extend([from.seq.into(), looked_at.into(), as_integer(limit).into()]);
        values.push(filter.tenant.as_deref().into());
        statements.push(Statement::new(&FOLLOW, values));
    }
    let outcomes = batch_with_retry(shard, statements).await?;
    let top: Vec<TopRow> = outcome(&outcomes, 0)?.decode()?;
    let top = top.first().and_then(|row| row.seq).unwrap_or(0);
    let Some(from) = from else { return Ok(Part { rows: Vec::new(), place: place(top), more: false }) };
    let rows: Vec<Row> = outcome(&outcomes, 1)?.decode()?;
    let reached = match rows.last() {
        Some(last) if rows.len() == limit => last.seq,
        // Where everything was deleted meanwhile, numbers begin anew.
        _ => from.seq.saturating_add(looked_at).min(top),
    };
    Ok(Part { rows, place: place(reached), more: reached < top })
}
