//! Deleting what the archive has. Every condition is asked once more in the statements themselves: an event whose replay
//! has begun since it was read stays, and so does one that was deleted and published anew under the same name.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::read::Whole;
use crate::ledger::{batch_with_retry, json_rows, outcome};
use crate::ports::{Sql, SqlError, Statement};
use crate::time::Timestamp;

/// Whether the event `k` is still the one that was archived, at rest and left alone. None of the deletions changes the
/// answer for an event that must stay, so all three see the same events.
const MAY_GO: &str = "
    EXISTS (SELECT 1 FROM event_ledger e
             WHERE e.tenant_id = k.value ->> 'tenant_id' AND e.event_id = k.value ->> 'event_id'
               AND e.created_at = k.value ->> 'created_at')
    AND NOT EXISTS (SELECT 1 FROM event_dispatches o
                     WHERE o.tenant_id = k.value ->> 'tenant_id' AND o.event_id = k.value ->> 'event_id'
                       AND (o.next_retry_at IS NOT NULL OR o.lease IS NOT NULL OR o.updated_at >= k.value ->> 'touched'))
    AND NOT EXISTS (SELECT 1 FROM json_each(k.value, '$.incident_ids') t
                      JOIN dlq_incidents x ON x.incident_id = t.value
                     WHERE x.status NOT IN ('resolved', 'ignored') OR x.updated_at >= k.value ->> 'touched')";

/// Deletes closed incidents.
pub static DELETE_INCIDENTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "DELETE FROM dlq_incidents WHERE incident_id IN (
           SELECT t.value FROM json_each(?1) k, json_each(k.value, '$.incident_ids') t WHERE {MAY_GO})"
    )
});

/// Deletes dispatches.
pub static DELETE_DISPATCHES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "DELETE FROM event_dispatches WHERE (tenant_id, event_id) IN (
           SELECT k.value ->> 'tenant_id', k.value ->> 'event_id' FROM json_each(?1) k WHERE {MAY_GO})"
    )
});

/// Deletes events.
pub static DELETE_EVENTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "DELETE FROM event_ledger WHERE (tenant_id, event_id) IN (
           SELECT k.value ->> 'tenant_id', k.value ->> 'event_id' FROM json_each(?1) k WHERE {MAY_GO})"
    )
});

/// Counts what stayed. The numbers that the deletions themselves report would be lost with an answer.
pub const COUNT_LEFT: &str = "
    SELECT count(*) AS stayed
      FROM json_each(?1) k
      JOIN event_ledger l ON l.tenant_id = k.value ->> 'tenant_id' AND l.event_id = k.value ->> 'event_id'
                         AND l.created_at = k.value ->> 'created_at'";

#[derive(Serialize)]
struct Row<'a> {
    tenant_id: &'a str,
    event_id: &'a str,
    created_at: Timestamp,
    touched: Timestamp,
    incident_ids: &'a [String],
}

#[derive(Deserialize)]
struct Left {
    stayed: u64,
}

/// Deletes archived events with all that belongs to them, and tells how many are gone. One round trip.
pub(super) async fn delete<S: Sql>(shard: &S, events: &[Whole]) -> Result<u64, SqlError> {
    let rows: Vec<_> = events.iter().map(Row::of).collect();
    let rows = json_rows(&rows)?;
    let mut statements = Vec::new();
    if events.iter().any(|event| !event.incident_ids.is_empty()) {
        statements.push(Statement::new(&DELETE_INCIDENTS, vec![rows.as_str().into()]));
    }
    statements.push(Statement::new(&DELETE_DISPATCHES, vec![rows.as_str().into()]));
    statements.push(Statement::new(&DELETE_EVENTS, vec![rows.as_str().into()]));
    statements.push(Statement::new(COUNT_LEFT, vec![rows.into()]));
    let last = statements.len() - 1;
    let outcomes = batch_with_retry(shard, statements).await?;
    let left = outcome(&outcomes, last)?.decode::<Left>()?.pop().map_or(0, |row| row.stayed);
    Ok((events.len() as u64).saturating_sub(left))
}

impl<'a> Row<'a> {
    fn of(event: &'a Whole) -> Self {
        Self {
            tenant_id: &event.line.tenant_id,
            event_id: &event.line.event_id,
            created_at: event.line.created_at,
            touched: event.touched,
            incident_ids: &event.incident_ids,
        }
    }
}
