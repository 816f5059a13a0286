//! Reading what is to be archived, with everything that belongs to it.

use std::collections::HashMap;

use serde::Deserialize;

use super::archive::Candidate;
use super::line::{DispatchLine, IncidentLine, Line, VERSION};
use crate::incident::{incident_id_of, rows_of_two};
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
           d.history AS "historyJson",
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

/// The event that a dispatch or an incident belongs to.
#[derive(Deserialize)]
struct Owner {
    tenant_id: String,
    event_id: String,
    #[serde(default)]
    busy: u8,
}

/// An event with what belongs to it.
struct Gathered {
    line: Line,
    /// Whether one of its dispatches is under way.
    busy: bool,
}

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
    let dispatches: Vec<(Owner, DispatchLine)> = rows_of_two(outcome(&outcomes, 1)?)?;
    let may_have: Vec<String> = dispatches
        .iter()
        .filter(|(_, dispatch)| dispatch.may_have_incident())
        .map(|(owner, dispatch)| incident_id_of(&owner.tenant_id, &owner.event_id, &dispatch.topic))
        .collect();
    let incidents = read_incidents(shard, &may_have).await?;
    let mut events = gather(lines, dispatches, incidents);
    let whole = candidates.iter().filter_map(|candidate| {
        let event = events.remove(&(candidate.tenant_id.clone(), candidate.event_id.clone()))?;
        event.may_go(candidate.touched).then(|| event.whole(candidate.touched))
    });
    Ok(whole.collect())
}

async fn read_incidents<S: Sql>(shard: &S, ids: &[String]) -> Result<Vec<(Owner, IncidentLine)>, SqlError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let statement = Statement::new(READ_INCIDENTS, vec![json_rows(ids)?.into()]);
    rows_of_two(outcome(&batch_with_retry(shard, vec![statement]).await?, 0)?)
}

/// Events by their identity.
fn gather(
    lines: Vec<Line>,
    dispatches: Vec<(Owner, DispatchLine)>,
    incidents: Vec<(Owner, IncidentLine)>,
) -> HashMap<(String, String), Gathered> {
    let mut events = HashMap::new();
    for line in lines {
        events.insert((line.tenant_id.clone(), line.event_id.clone()), Gathered { line, busy: false });
    }
    for (owner, dispatch) in dispatches {
        if let Some(event) = events.get_mut(&(owner.tenant_id, owner.event_id)) {
            event.busy |= owner.busy != 0;
            event.line.dispatches.push(dispatch);
        }
    }
    for (owner, incident) in incidents {
        if let Some(event) = events.get_mut(&(owner.tenant_id, owner.event_id)) {
            event.line.incidents.push(incident);
        }
    }
    events
}

impl Gathered {
    /// Whether it has come to rest. A dispatch that ended badly and has no incident at all is a contradiction that somebody
    /// should see, so its event stays.
    fn may_go(&self, touched: Timestamp) -> bool {
        let Line { dispatches, incidents, .. } = &self.line;
        let is_told_of = |topic: &str| incidents.iter().any(|incident| incident.topic == topic);
        !self.busy
            && dispatches.iter().all(|dispatch| {
                dispatch.updated_at < touched && (!dispatch.ended_badly() || is_told_of(&dispatch.topic))
            })
            && incidents.iter().all(|incident| incident.is_closed() && incident.updated_at < touched)
    }

    /// The event as it is archived. It has one dispatch of each topic, and one incident.
    fn whole(self, touched: Timestamp) -> Whole {
        let mut line = self.line;
        line.v = VERSION;
        line.dispatches.sort_unstable_by(|one, other| one.topic.cmp(&other.topic));
        line.incidents.sort_unstable_by(|one, other| one.topic.cmp(&other.topic));
        let suspects = line.dispatches.iter().filter(|dispatch| dispatch.may_have_incident());
        let incident_ids = suspects
            .map(|dispatch| incident_id_of(&line.tenant_id, &line.event_id, &dispatch.topic))
            .collect();
        Whole { line, touched, incident_ids }
    }
}
