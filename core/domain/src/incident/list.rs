//! Listing incidents, newest first, over all shards, page by page.
//!
//! Every statement walks one index: that of the tenant, or, once per state, that of the states. What else the filter says is
//! checked row by row on the way. Rows of one moment are ordered by shard and by `seq`, so that a cursor stands between two.

use std::cmp::Reverse;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::error::OperationError;
use super::filter::Filter;
use super::operations::Operations;
use super::record::{COLUMNS, Incident, rows_of_two};
use super::state::IncidentState;
use crate::join::join_all;
use crate::ledger::{batch_with_retry, json_rows};
use crate::limits::INCIDENT_PAGE_MAX;
use crate::ports::{SQL_INTEGER_MAX, Sql, SqlError, Statement, Value};
use crate::time::Timestamp;

/// What a filter says beyond its index and its times: ?1 topic, ?2 type, ?3 error, ?4 states, ?5 the event's id.
pub(crate) const REST_OF_FILTER: &str = "(?1 IS NULL OR i.topic = ?1) AND (?2 IS NULL OR i.type = ?2)
       AND (?3 IS NULL OR instr(lower(i.error_message), lower(?3)) > 0)
       AND i.status IN (SELECT value FROM json_each(?4)) AND (?5 IS NULL OR i.event_id = ?5)";

/// Lists the incidents of one state.
pub static LIST_BY_STATUS: LazyLock<String> = LazyLock::new(|| list_sql("status"));

/// Lists the incidents of one tenant.
pub static LIST_BY_TENANT: LazyLock<String> = LazyLock::new(|| list_sql("tenant_id"));

fn list_sql(column: &str) -> String {
    format!(
        "SELECT {COLUMNS}, i.seq FROM dlq_incidents i
          WHERE {REST_OF_FILTER} AND i.{column} = ?6 AND i.created_at >= ?7
            AND (i.created_at, i.seq) < (?8, ?9)
          ORDER BY i.created_at DESC, i.seq DESC LIMIT ?10"
    )
}

/// One page of incidents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IncidentPage {
    /// The incidents, newest first.
    pub incidents: Vec<Incident>,
    /// Where the next page begins, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The last row of a page. The order of the fields is the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cursor {
    created_at: Timestamp,
    shard: usize,
    seq: i64,
}

#[derive(Deserialize)]
struct Seq {
    seq: i64,
}

impl<S: Sql> Operations<'_, S> {
    /// At most `limit` incidents, from `cursor` on. One call per shard, all at once; one call if the filter names a tenant.
    pub async fn list(
        &self,
        filter: &Filter,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<IncidentPage, OperationError> {
        if !(1..=INCIDENT_PAGE_MAX).contains(&limit) {
            return Err(OperationError::invalid("limit", format!("must be 1 to {INCIDENT_PAGE_MAX}")));
        }
        let cursor = cursor.map(Cursor::parse).transpose()?;
        let only = filter.tenant.as_deref().map(|tenant| self.ledger.shard_of(tenant));
        let shards = self.ledger.shards().filter(|(number, _)| only.is_none_or(|only| only == *number));
        let answers = join_all(
            shards.map(async |(number, shard)| list_shard(shard, number, filter, limit, cursor).await),
        );
        let mut rows = Vec::new();
        for answer in answers.await {
            rows.extend(answer?);
        }
        rows.sort_unstable_by_key(|(place, _)| Reverse(*place));
        let more = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().filter(|_| more).map(|(place, _)| place.to_string());
        Ok(IncidentPage {
            incidents: rows.into_iter().map(|(_, incident)| incident).collect(),
            next_cursor: last,
        })
    }
}

/// One more than the page holds, which tells whether there is a next one.
async fn list_shard<S: Sql>(
    shard: &S,
    number: usize,
    filter: &Filter,
    limit: usize,
    cursor: Option<Cursor>,
) -> Result<Vec<(Cursor, Incident)>, SqlError> {
    let (before, before_seq) = upper_bound(number, filter.until, cursor);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let (sql, positions) = walks(filter, &LIST_BY_STATUS, &LIST_BY_TENANT);
    let mut statements = Vec::new();
    for position in positions {
        let mut values = rest_of_filter(filter)?;
        values.extend([position.into(), lower_bound(filter).into(), before.into()]);
        values.extend([before_seq.into(), limit.into()]);
        statements.push(Statement::new(sql, values));
    }
    let mut rows = Vec::new();
    for outcome in batch_with_retry(shard, statements).await? {
        for (incident, Seq { seq }) in rows_of_two::<Incident, Seq>(&outcome)? {
            let place = Cursor { created_at: incident.created_at, shard: number, seq };
            rows.push((place, incident));
        }
    }
    Ok(rows)
}

/// The index that suits a filter, and the places in it to go through.
pub(crate) fn walks<'a>(
    filter: &'a Filter,
    by_status: &'static str,
    by_tenant: &'static str,
) -> (&'static str, Vec<&'a str>) {
    match &filter.tenant {
        Some(tenant) => (by_tenant, vec![tenant]),
        None => (by_status, states(filter).iter().map(|state| state.name()).collect()),
    }
}

fn states(filter: &Filter) -> &[IncidentState] {
    filter.status.as_deref().unwrap_or(&IncidentState::ALL)
}

/// The values of [`REST_OF_FILTER`].
pub(crate) fn rest_of_filter(filter: &Filter) -> Result<Vec<Value>, SqlError> {
    let topic = filter.topic.as_ref().map(|topic| topic.as_str());
    let states: Vec<_> = states(filter).iter().map(|state| state.name()).collect();
    Ok(vec![
        topic.into(),
        filter.event_type.as_deref().into(),
        filter.error.as_deref().into(),
        json_rows(&states)?.into(),
        filter.event_id.as_deref().into(),
    ])
}

pub(crate) fn lower_bound(filter: &Filter) -> Timestamp {
    filter.since.unwrap_or(Timestamp::from_unix_ms(i64::MIN))
}

/// The place before which this shard's rows must stand. At the cursor's own moment, shards of a higher number are done, and
/// those of a lower one have not begun.
fn upper_bound(shard: usize, until: Option<Timestamp>, cursor: Option<Cursor>) -> (Timestamp, i64) {
    let end = (until.unwrap_or(Timestamp::from_unix_ms(i64::MAX)), 0);
    let Some(cursor) = cursor else { return end };
    let seq = match shard.cmp(&cursor.shard) {
        std::cmp::Ordering::Less => SQL_INTEGER_MAX,
        std::cmp::Ordering::Equal => cursor.seq,
        std::cmp::Ordering::Greater => 0,
    };
    end.min((cursor.created_at, seq))
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.created_at.unix_ms(), self.shard, self.seq)
    }
}

impl Cursor {
    fn parse(text: &str) -> Result<Self, OperationError> {
        let mut parts = text.split('.');
        let read = || {
            let created_at = Timestamp::from_unix_ms(parts.next()?.parse().ok()?);
            let shard = parts.next()?.parse().ok()?;
            let seq = parts.next()?.parse().ok().filter(|seq| (0..=SQL_INTEGER_MAX).contains(seq))?;
            parts.next().is_none().then_some(Self { created_at, shard, seq })
        };
        let mut read = read;
        read().ok_or_else(|| OperationError::invalid("cursor", "is not one that a list has given"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_and_nothing_else_is_one() {
        let cursor = Cursor { created_at: Timestamp::from_unix_ms(1_767_225_600_000), shard: 2, seq: 17 };
        assert_eq!(Cursor::parse(&cursor.to_string()).unwrap(), cursor);
        for text in ["", "1", "1.2", "1.2.3.4", "a.0.1", "1.-1.1", "1.0.-1", "1.0.9007199254740992"] {
            assert!(Cursor::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_cursor_stands_between_two_shards_of_one_moment() {
        let at = Timestamp::from_unix_ms(5);
        let cursor = Some(Cursor { created_at: at, shard: 1, seq: 7 });
        assert_eq!(upper_bound(0, None, cursor), (at, SQL_INTEGER_MAX));
        assert_eq!(upper_bound(1, None, cursor), (at, 7));
        assert_eq!(upper_bound(2, None, cursor), (at, 0));
        let earlier = Timestamp::from_unix_ms(3);
        assert_eq!(upper_bound(1, Some(earlier), cursor), (earlier, 0));
    }
}
