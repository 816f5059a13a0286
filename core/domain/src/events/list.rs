//! Listing events, newest first, page by page.
//!
//! There is no index by time over all tenants, since every event would pay for it. The ledger's own numbers stand in for one:
//! events are numbered as they are recorded, and what comes back from the archive is put before all others. So a list of a
//! tenant walks that tenant's index, and any other list walks down the numbers of every shard. A filter that fits few events
//! would have to look at very many; a page looks at so many and no more, and may be empty and have a next one.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::Events;
use super::cursor::{Cursor, Place};
use super::filter::{EventFilter, FILTER};
use super::record::{COLUMNS, EventBrief, Row};
use crate::incident::OperationError;
use crate::join::join_all;
use crate::ledger::{batch_with_retry, outcome};
use crate::limits::{EVENT_PAGE_MAX, EVENTS_CLOCK_SKEW_MS, EVENTS_LOOKED_AT_MAX};
use crate::ports::{Outcome, SQL_INTEGER_MAX, Sql, SqlError, Statement, Value};
use crate::time::Timestamp;

/// The lowest number that a page looks at: ?6 is the place, ?7 how many it looks at.
const LOWEST: &str = "min(?6, (SELECT max(seq) + 1 FROM event_ledger)) - ?7";

/// Lists the events of a shard below a number.
pub static LIST: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {COLUMNS} FROM event_ledger l
          WHERE l.seq < ?6 AND l.seq >= {LOWEST} AND {filter} ORDER BY l.seq DESC LIMIT ?8",
        filter = *FILTER
    )
});

/// The first event that such a page does not look at.
pub static NEXT: LazyLock<String> = LazyLock::new(|| {
    let lowest = LOWEST.replace("?6", "?1").replace("?7", "?2");
    format!("SELECT seq, created_at FROM event_ledger WHERE seq < {lowest} ORDER BY seq DESC LIMIT 1")
});

/// Lists the events of a tenant before a place, down to the moment of the first that the page does not look at.
pub static LIST_OF_TENANT: LazyLock<String> = LazyLock::new(|| {
    let next = next_of_tenant("created_at", ["?8", "?4", "?6", "?7", "?9"]);
    format!(
        "SELECT {COLUMNS} FROM event_ledger l
          WHERE l.tenant_id = ?8 AND l.created_at >= coalesce(({next}), ?4) AND (l.created_at, l.seq) < (?6, ?7)
            AND {filter} ORDER BY l.created_at DESC, l.seq DESC LIMIT ?10",
        filter = *FILTER
    )
});

/// The first event that such a page does not look at.
pub static NEXT_OF_TENANT: LazyLock<String> =
    LazyLock::new(|| next_of_tenant("seq, created_at", ["?1", "?2", "?3", "?4", "?5"]));

fn next_of_tenant(columns: &str, [tenant, since, at, seq, looked_at]: [&str; 5]) -> String {
    format!(
        "SELECT {columns} FROM event_ledger
          WHERE tenant_id = {tenant} AND created_at >= {since} AND (created_at, seq) < ({at}, {seq})
          ORDER BY created_at DESC, seq DESC LIMIT 1 OFFSET {looked_at}"
    )
}

/// Finds the event of a tenant that has an id.
pub static FIND_BY_NAME: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {COLUMNS} FROM event_ledger l WHERE l.tenant_id = ?7 AND l.event_id = ?6 AND {filter}",
        filter = *FILTER
    )
});

/// Finds the events of any tenant that have an id, jumping from tenant to tenant.
pub static FIND_BY_ID: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH RECURSIVE tenants (tenant_id) AS (
           SELECT (SELECT min(tenant_id) FROM event_ledger)
            UNION ALL
           SELECT (SELECT min(l.tenant_id) FROM event_ledger l WHERE l.tenant_id > tenants.tenant_id)
             FROM tenants WHERE tenant_id IS NOT NULL)
         SELECT {COLUMNS} FROM tenants CROSS JOIN event_ledger l
          WHERE l.tenant_id = tenants.tenant_id AND l.event_id = ?6 AND {filter} LIMIT ?7",
        filter = *FILTER
    )
});

/// The number from which on events are not older than a moment, by halving: the ledger's numbers go with time.
pub const FIND_SEQ: &str = "
    WITH RECURSIVE halves (low, high) AS (
      SELECT (SELECT min(seq) FROM event_ledger), (SELECT max(seq) FROM event_ledger) + 1
       UNION ALL
      SELECT iif((SELECT created_at FROM event_ledger WHERE seq >= low + (high - low) / 2 ORDER BY seq LIMIT 1) >= ?1,
                 low, low + (high - low) / 2 + 1),
             iif((SELECT created_at FROM event_ledger WHERE seq >= low + (high - low) / 2 ORDER BY seq LIMIT 1) >= ?1,
                 low + (high - low) / 2, high)
        FROM halves WHERE low < high)
    SELECT low AS seq FROM halves WHERE low >= high";

/// One page of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    /// The events, newest first.
    pub events: Vec<EventBrief>,
    /// Where the next page begins, if there may be one. A page can be empty and have a next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct PlaceRow {
    seq: i64,
    created_at: Timestamp,
}

/// What a shard has for a page.
#[derive(Debug, Default)]
struct Part {
    rows: std::collections::VecDeque<Row>,
    /// Where the shard goes on once these rows are shown; none if it has nothing more.
    rest: Option<Place>,
}

impl<S: Sql> Events<'_, S> {
    /// At most `limit` events, from `cursor` on. One call per shard, all at once, and one more if the first page ends at a
    /// moment; one call if the filter names a tenant.
    ///
    /// Over all tenants `since` and `until` hold to the millisecond for what was recorded in order. What came back from the
    /// archive stands at the end, and is found for certain with its tenant.
    pub async fn list(
        &self,
        filter: &EventFilter,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<EventPage, OperationError> {
        if !(1..=EVENT_PAGE_MAX).contains(&limit) {
            return Err(OperationError::invalid("limit", format!("must be 1 to {EVENT_PAGE_MAX}")));
        }
        if let Some(id) = &filter.id {
            return self.find(filter, id, limit).await;
        }
        let shards = self.shards_of(filter);
        let places = match cursor {
            Some(cursor) => Cursor::parse(cursor, shards.len())?.0,
            None => self.first_places(filter, &shards).await?,
        };
        let parts = shards.iter().zip(&places).map(async |(shard, place)| match place {
            Some(place) => list_shard(self.ledger.shard(*shard), filter, limit, *place).await,
            None => Ok(Part::default()),
        });
        let parts = join_all(parts).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(merge(parts, limit))
    }

    /// The shards that can have an event of the filter.
    pub(super) fn shards_of(&self, filter: &EventFilter) -> Vec<usize> {
        match &filter.tenant {
            Some(tenant) => vec![self.ledger.shard_of(tenant)],
            None => self.ledger.shards().map(|(number, _)| number).collect(),
        }
    }

    /// Where a list begins.
    async fn first_places(
        &self,
        filter: &EventFilter,
        shards: &[usize],
    ) -> Result<Vec<Option<Place>>, OperationError> {
        let end = Place::end(Timestamp::from_unix_ms(i64::MAX));
        match filter.until {
            None => Ok(vec![Some(end); shards.len()]),
            Some(until) if filter.tenant.is_some() => {
                Ok(vec![Some(Place { at: until, seq: -SQL_INTEGER_MAX })])
            }
            Some(until) => {
                let seqs = self.seqs_at(shards, until.plus_ms(EVENTS_CLOCK_SKEW_MS)).await?;
                Ok(seqs.into_iter().map(|seq| seq.map(|seq| Place { seq, ..end })).collect())
            }
        }
    }

    /// The numbers from which on events are not older than a moment; none in an empty shard.
    pub(super) async fn seqs_at(
        &self,
        shards: &[usize],
        at: Timestamp,
    ) -> Result<Vec<Option<i64>>, SqlError> {
        let answers = shards.iter().map(async |shard| {
            let statement = Statement::new(FIND_SEQ, vec![at.into()]);
            let outcomes = batch_with_retry(self.ledger.shard(*shard), vec![statement]).await?;
            #[derive(Deserialize)]
            struct SeqRow {
                seq: Option<i64>,
            }
            let rows: Vec<SeqRow> = outcome(&outcomes, 0)?.decode()?;
            Ok(rows.first().and_then(|row| row.seq))
        });
        join_all(answers).await.into_iter().collect()
    }

    async fn find(&self, filter: &EventFilter, id: &str, limit: usize) -> Result<EventPage, OperationError> {
        let mut values = filter.values()?;
        let (sql, last): (_, Value) = match &filter.tenant {
            Some(tenant) => (FIND_BY_NAME.as_str(), tenant.as_str().into()),
            None => (FIND_BY_ID.as_str(), as_integer(limit).into()),
        };
        values.extend([id.into(), last]);
        let shards = self.shards_of(filter);
        let answers = shards.iter().map(async |shard| {
            let statement = Statement::new(sql, values.clone());
            let outcomes = batch_with_retry(self.ledger.shard(*shard), vec![statement]).await?;
            outcome(&outcomes, 0)?.decode::<Row>()
        });
        let mut events = Vec::new();
        for rows in join_all(answers).await {
            events.extend(rows?.into_iter().map(EventBrief::from));
        }
        events.truncate(limit);
        Ok(EventPage { events, next_cursor: None })
    }
}

async fn list_shard<S: Sql>(
    shard: &S,
    filter: &EventFilter,
    limit: usize,
    place: Place,
) -> Result<Part, SqlError> {
    let looked_at = as_integer(EVENTS_LOOKED_AT_MAX);
    let mut values = filter.values()?;
    let since = filter.since.unwrap_or(Timestamp::from_unix_ms(i64::MIN));
    let statements = match &filter.tenant {
        Some(tenant) => {
            let next = vec![
                tenant.as_str().into(),
                since.into(),
                place.at.into(),
                place.seq.into(),
                looked_at.into(),
            ];
            values.extend([place.at.into(), place.seq.into(), tenant.as_str().into()]);
            values.extend([looked_at.into(), as_integer(limit).into()]);
            vec![Statement::new(&LIST_OF_TENANT, values), Statement::new(&NEXT_OF_TENANT, next)]
        }
        None => {
            values.extend([place.seq.into(), looked_at.into(), as_integer(limit).into()]);
            let next = vec![place.seq.into(), looked_at.into()];
            vec![Statement::new(&LIST, values), Statement::new(&NEXT, next)]
        }
    };
    let outcomes = batch_with_retry(shard, statements).await?;
    part(&outcomes, filter, limit)
}

fn part(outcomes: &[Outcome], filter: &EventFilter, limit: usize) -> Result<Part, SqlError> {
    let rows: Vec<Row> = outcome(outcomes, 0)?.decode()?;
    if rows.len() == limit {
        let rest = rows.last().map(|row| Place { at: row.created_at, seq: row.seq });
        return Ok(Part { rows: rows.into(), rest });
    }
    let next: Option<PlaceRow> = outcome(outcomes, 1)?.decode()?.pop();
    let rest = match (next, &filter.tenant) {
        // Everything of its moment was looked at.
        (Some(next), Some(_)) => Some(Place { at: next.created_at, seq: -SQL_INTEGER_MAX }),
        (Some(next), None) if is_over(&next, filter) => None,
        (Some(next), None) => Some(Place { at: next.created_at, seq: next.seq.saturating_add(1) }),
        (None, _) => None,
    };
    Ok(Part { rows: rows.into(), rest })
}

/// Whether all further events are older than the filter allows.
fn is_over(next: &PlaceRow, filter: &EventFilter) -> bool {
    filter.since.is_some_and(|since| next.created_at < since.plus_ms(-EVENTS_CLOCK_SKEW_MS))
}

/// Takes the newest of all shards again and again, until the page is full or a shard may have a newer one that it has not
/// shown yet.
fn merge(mut parts: Vec<Part>, limit: usize) -> EventPage {
    let mut events = Vec::new();
    let mut places: Vec<Option<Place>> = parts.iter().map(first_place).collect();
    while events.len() < limit {
        let is_waiting = parts.iter().any(|part| part.rows.is_empty() && part.rest.is_some());
        let newest = (0..parts.len())
            .filter_map(|at| Some((parts.get(at)?.rows.front()?.created_at, at)))
            .max_by_key(|(created_at, at)| (*created_at, std::cmp::Reverse(*at)));
        let Some((_, at)) = newest.filter(|_| !is_waiting) else { break };
        let (Some(part), Some(place)) = (parts.get_mut(at), places.get_mut(at)) else { break };
        if let Some(row) = part.rows.pop_front() {
            *place = Some(Place { at: row.created_at, seq: row.seq });
            events.push(EventBrief::from(row));
        }
    }
    for (part, place) in parts.iter().zip(&mut places) {
        if part.rows.is_empty() {
            *place = part.rest;
        }
    }
    let more = places.iter().any(Option::is_some);
    EventPage { events, next_cursor: more.then(|| Cursor(places).to_string()) }
}

/// Just before the first row, so that what is recorded meanwhile does not turn up in the middle of the list.
fn first_place(part: &Part) -> Option<Place> {
    part.rows.front().map(|row| Place { at: row.created_at, seq: row.seq.saturating_add(1) })
}

pub(super) fn as_integer(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX).min(SQL_INTEGER_MAX)
}
