//! Reading what is to be archived, with everything that belongs to it.

use std::collections::HashMap;

use serde::Deserialize;

use super::archive::Candidate;
use super::line::{DispatchLine, IncidentLine, Line, VERSION};
use crate::incident::incident_id_of;
use crate::ledger::{batch_with_retry, json_rows, outcome};
use crate::ports::{Sql, SqlError, Statement};
use crate::time::Timestamp;

/// Reads events, unless another has come under the same name since they were looked at.
pub const READ_EVENTS: &str = r#"
    SELECT l.tenant_id AS "tenantId", l.event_id AS "eventId", l.type, l.occurred_at AS "occurredAt", l.source, l.subject,
           l.context AS "contextJson", l.payload AS "payloadJson", l.payload_ref AS "payloadRef",
           l.payload_hash AS "payloadHash", l.receipt, l.created_at AS "createdAt"
      FROM json_each(?1) k
      JOIN event_ledger l ON l.tenant_id = k.value ->> 'tenant_id' AND l.event_id = k.value ->> 'event_id'
                         AND l.created_at = k.value ->> 'created_at'"#;

/// Reads their dispatches.
pub const READ_DISPATCHES: &str = r#"
    SELECT d.tenant_id, d.event_id, d.next_retry_at IS NOT NULL OR d.lease IS NOT NULL AS busy, d.topic, d.status, d.attempts,
           d.max_attempts AS "maxAttempts", d.starts, d.replays, d.replay_of AS "replayOf", d.last_error AS "lastError",
           d.created_at AS "createdAt", d.updated_at AS "updatedAt"
      FROM json_each(?1) k
      JOIN event_dispatches d ON d.tenant_id = k.value ->> 'tenant_id' AND d.event_id = k.value ->> 'event_id'"#;

/// Reads incidents.
pub const READ_INCIDENTS: &str = r#"
    SELECT tenant_id, event_id, incident_id AS "incidentId", kind, topic, source_queue AS "sourceQueue",
           error_message AS "errorMessage", error_stack AS "errorStack", generation, retry_count AS "retryCount", status,
           last_op AS "lastOp", alerted_at AS "alertedAt", replayed_at AS "replayedAt", resolved_at AS "resolvedAt",
           resolved_by AS "resolvedBy", created_at AS "createdAt", updated_at AS "updatedAt"
      FROM dlq_incidents WHERE incident_id IN (SELECT value FROM json_each(?1))"#;

/// Something that belongs to an event.
#[derive(Deserialize)]
struct Belonging<T> {
    tenant_id: String,
    event_id: String,
    #[serde(default)]
    busy: u8,
    #[serde(flatten)]
    item: T,
}

type ByEvent<T> = HashMap<(String, String), Vec<T>>;

/// An event that may go, and the incidents that it may have.
#[derive(Debug)]
pub(super) struct Whole {
    pub line: Line,
    pub touched: Timestamp,
    pub incident_ids: Vec<String>,
}

/// Reads candidates in order, and leaves out those that may not go after all. At most two round trips; one if none of
/// them has ever failed.
pub(super) async fn read<S: Sql>(shard: &S, candidates: &[Candidate]) -> Result<Vec<Whole>, SqlError> {
    let keys = json_rows(candidates)?;
    let statements = vec![
        Statement::new(READ_EVENTS, vec![keys.as_str().into()]),
        Statement::new(READ_DISPATCHES, vec![keys.into()]),
    ];
    let outcomes = batch_with_retry(shard, statements).await?;
    let lines: Vec<Line> = outcome(&outcomes, 0)?.decode()?;
    let dispatches: Vec<Belonging<DispatchLine>> = outcome(&outcomes, 1)?.decode()?;
    let may_have: Vec<String> = dispatches
        .iter()
        .filter(|d| d.item.may_have_incident())
        .map(|d| incident_id_of(&d.tenant_id, &d.event_id, &d.item.topic))
        .collect();
    let mut incidents = by_event(read_incidents(shard, &may_have).await?);
    let mut dispatches = by_event(dispatches);
    let mut lines: HashMap<_, _> =
        lines.into_iter().map(|line| ((line.tenant_id.clone(), line.event_id.clone()), line)).collect();
    let whole = candidates.iter().filter_map(|candidate| {
        let key = (candidate.tenant_id.clone(), candidate.event_id.clone());
        let mut line = lines.remove(&key)?;
        let dispatches = dispatches.remove(&key).unwrap_or_default();
        let incidents = incidents.remove(&key).unwrap_or_default();
        if !may_go(&dispatches, &incidents, candidate.touched) {
            return None;
        }
        line.v = VERSION;
        line.dispatches = sorted(dispatches, |d| d.topic.clone());
        line.incidents = sorted(incidents, |i| i.topic.clone());
        let suspects = line.dispatches.iter().filter(|d| d.may_have_incident());
        let incident_ids =
            suspects.map(|d| incident_id_of(&line.tenant_id, &line.event_id, &d.topic)).collect();
        Some(Whole { line, touched: candidate.touched, incident_ids })
    });
    Ok(whole.collect())
}

async fn read_incidents<S: Sql>(shard: &S, ids: &[String]) -> Result<Vec<Belonging<IncidentLine>>, SqlError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let statement = Statement::new(READ_INCIDENTS, vec![json_rows(ids)?.into()]);
    outcome(&batch_with_retry(shard, vec![statement]).await?, 0)?.decode()
}

/// Whether an event with these belongings has come to rest. A dispatch that ended badly and has no incident at all is a
/// contradiction that somebody should see, so it stays.
fn may_go(
    dispatches: &[Belonging<DispatchLine>],
    incidents: &[Belonging<IncidentLine>],
    touched: Timestamp,
) -> bool {
    let closed = |topic: &str| incidents.iter().any(|incident| incident.item.topic == topic);
    dispatches.iter().all(|d| {
        d.busy == 0 && d.item.updated_at < touched && (!d.item.ended_badly() || closed(&d.item.topic))
    }) && incidents.iter().all(|incident| incident.item.is_closed() && incident.item.updated_at < touched)
}

fn by_event<T>(rows: Vec<Belonging<T>>) -> ByEvent<Belonging<T>> {
    let mut events: ByEvent<Belonging<T>> = HashMap::new();
    for row in rows {
        events.entry((row.tenant_id.clone(), row.event_id.clone())).or_default().push(row);
    }
    events
}

fn sorted<T>(rows: Vec<Belonging<T>>, topic: impl Fn(&T) -> String) -> Vec<T> {
    let mut items: Vec<T> = rows.into_iter().map(|row| row.item).collect();
    items.sort_by_key(topic);
    items
}
