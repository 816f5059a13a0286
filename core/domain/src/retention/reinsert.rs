//! The statements that put archived events back, one batch for a page of one shard.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::line::{DispatchLine, IncidentLine, Line};
use crate::history::sql_replayed;
use crate::incident::{IncidentEvent, incident_id_of, sql_incident_after, sql_incident_before};
use crate::ledger::{batch_with_retry, json_rows, outcome};
use crate::ports::{Sql, SqlError, Statement};
use crate::states::{DispatchEvent, DispatchState, sql_state_after, sql_states_before};
use crate::time::Timestamp;
use crate::topic::Topic;

/// Reads which events are there.
pub const READ_PRESENT: &str = "
    SELECT l.tenant_id, l.event_id
      FROM json_each(?1) k
      JOIN event_ledger l ON l.tenant_id = k.value ->> 0 AND l.event_id = k.value ->> 1";

/// Puts events in. The receipt tells a call which ones it has put in itself. They come before all that is there, as they did
/// once: whoever follows the ledger must not take them for new ones.
pub const INSERT_EVENTS: &str = "
    INSERT INTO event_ledger (seq, tenant_id, event_id, type, occurred_at, source, subject, context, payload, payload_ref,
                              payload_hash, receipt, created_at)
    SELECT (SELECT coalesce(min(seq), 1) FROM event_ledger) - json_array_length(?1) + key,
           value ->> 'tenantId', value ->> 'eventId', value ->> 'type', value ->> 'occurredAt', value ->> 'source',
           value ->> 'subject', value ->> 'contextJson', value ->> 'payloadJson', value ->> 'payloadRef',
           value ->> 'payloadHash', ?2, value ->> 'createdAt'
      FROM json_each(?1)
     WHERE true
    ON CONFLICT (tenant_id, event_id) DO NOTHING";

/// Puts their dispatches in. They count as touched now, so that the next retention leaves the operator some time.
pub const INSERT_DISPATCHES: &str = "
    INSERT INTO event_dispatches (tenant_id, event_id, topic, status, attempts, max_attempts, starts, replays, replay_of,
                                  last_error, history, created_at, updated_at)
    SELECT l.tenant_id, l.event_id, k.value ->> 'topic', k.value ->> 'status', k.value ->> 'attempts',
           k.value ->> 'maxAttempts', k.value ->> 'starts', k.value ->> 'replays', k.value ->> 'replayOf',
           k.value ->> 'lastError', k.value ->> 'historyJson', k.value ->> 'createdAt', ?3
      FROM json_each(?1) k
      JOIN event_ledger l ON l.tenant_id = k.value ->> 'tenantId' AND l.event_id = k.value ->> 'eventId'
     WHERE +l.receipt = ?2
    ON CONFLICT (tenant_id, event_id, topic) DO NOTHING";

/// Puts their incidents in.
pub const INSERT_INCIDENTS: &str = "
    INSERT INTO dlq_incidents (incident_id, kind, tenant_id, event_id, topic, type, source_queue, error_message, error_stack,
                               generation, retry_count, payload, payload_ref, status, last_op, alerted_at, replayed_at,
                               resolved_at, resolved_by, created_at, updated_at)
    SELECT k.value ->> 'incidentId', k.value ->> 'kind', l.tenant_id, l.event_id, k.value ->> 'topic', l.type,
           k.value ->> 'sourceQueue', k.value ->> 'errorMessage', k.value ->> 'errorStack', k.value ->> 'generation',
           k.value ->> 'retryCount', l.payload, l.payload_ref, k.value ->> 'status', k.value ->> 'lastOp',
           k.value ->> 'alertedAt', k.value ->> 'replayedAt', k.value ->> 'resolvedAt', k.value ->> 'resolvedBy',
           k.value ->> 'createdAt', k.value ->> 'updatedAt'
      FROM json_each(?1) k
      JOIN event_ledger l ON l.tenant_id = k.value ->> 'tenantId' AND l.event_id = k.value ->> 'eventId'
     WHERE +l.receipt = ?2
    ON CONFLICT (incident_id) DO NOTHING";

/// Has dispatches sent once more, unless this object has done so before. They are due at once, and the sweeper sends them.
pub static REPEAT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE event_dispatches
            SET status = {after}, replays = replays + 1, replay_of = ?2, attempts = 0, starts = 0, lease = NULL,
                lease_holder = NULL, last_error = NULL, claimed_by = ?3, next_retry_at = ?4, history = {history},
                updated_at = ?4
           FROM json_each(?1) k
          WHERE tenant_id = k.value ->> 'tenant_id' AND event_id = k.value ->> 'event_id' AND topic = k.value ->> 'topic'
            AND next_retry_at IS NULL AND status IN ({before}) AND replay_of IS NOT ?2",
        after = sql_state_after(DispatchEvent::Replay),
        history = sql_replayed("?4", "?2"),
        before = sql_states_before(DispatchEvent::Replay),
    )
});

/// Makes the dispatches to topics that an event never had.
pub static INSERT_REPEATED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO event_dispatches (tenant_id, event_id, topic, status, replays, replay_of, claimed_by, next_retry_at,
                                       created_at, updated_at)
         SELECT l.tenant_id, l.event_id, k.value ->> 'topic', '{pending}', 1, ?2, ?3, ?4, ?4, ?4
           FROM json_each(?1) k
           JOIN event_ledger l ON l.tenant_id = k.value ->> 'tenant_id' AND l.event_id = k.value ->> 'event_id'
          WHERE true
         ON CONFLICT (tenant_id, event_id, topic) DO NOTHING",
        pending = DispatchState::Pending.name(),
    )
});

/// Moves the incidents of the dispatches that this call has had repeated.
pub static RETRY_REPEATED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE dlq_incidents SET status = {after}, replayed_at = ?3, updated_at = ?3
           FROM json_each(?1) k
          WHERE incident_id = k.value ->> 'incident_id' AND status IN ({before})
            AND EXISTS (SELECT 1 FROM event_dispatches d
                         WHERE d.tenant_id = k.value ->> 'tenant_id' AND d.event_id = k.value ->> 'event_id'
                           AND d.topic = k.value ->> 'topic' AND d.claimed_by = ?2)",
        after = sql_incident_after(IncidentEvent::Replay),
        before = sql_incident_before(IncidentEvent::Replay),
    )
});

/// Counts what this call has put in and has had repeated.
pub const COUNT_RESTORED: &str = "
    SELECT (SELECT count(*) FROM json_each(?1) k
              JOIN event_ledger l ON l.tenant_id = k.value ->> 0 AND l.event_id = k.value ->> 1
             WHERE +l.receipt = ?3) AS restored,
           (SELECT count(*) FROM json_each(?2) k
              JOIN event_dispatches d ON d.tenant_id = k.value ->> 'tenant_id' AND d.event_id = k.value ->> 'event_id'
                                     AND d.topic = k.value ->> 'topic'
             WHERE +d.claimed_by = ?3) AS replayed";

/// Writes down who had an object restored.
pub const LOG_RESTORE: &str = "
    INSERT INTO ops_log (op_id, at, actor, action, note) VALUES (?1, ?2, ?3, 'restore', ?4)
    ON CONFLICT (op_id) DO NOTHING";

/// A page of events on their way back.
pub(super) struct Page<'a> {
    /// Those that are not there.
    pub absent: &'a [Line],
    /// All of them.
    pub all: &'a [Line],
    /// Where all of them are sent.
    pub topics: &'a [Topic],
    /// The object that they come from.
    pub replay_of: &'a str,
    /// What the call signs with.
    pub token: &'a str,
    pub now: Timestamp,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Belonging<'a, T> {
    tenant_id: &'a str,
    event_id: &'a str,
    #[serde(flatten)]
    item: &'a T,
}

#[derive(Serialize)]
struct Target<'a> {
    tenant_id: &'a str,
    event_id: &'a str,
    topic: &'a Topic,
    incident_id: String,
}

#[derive(Deserialize)]
struct Present {
    tenant_id: String,
    event_id: String,
}

/// Reads which of these events a shard has.
pub(super) async fn read_present<S: Sql>(
    shard: &S,
    lines: &[Line],
) -> Result<HashSet<(String, String)>, SqlError> {
    let statement = Statement::new(READ_PRESENT, vec![json_rows(&keys(lines))?.into()]);
    let rows: Vec<Present> = outcome(&batch_with_retry(shard, vec![statement]).await?, 0)?.decode()?;
    Ok(rows.into_iter().map(|row| (row.tenant_id, row.event_id)).collect())
}

fn keys(lines: &[Line]) -> Vec<(&str, &str)> {
    lines.iter().map(|line| (line.tenant_id.as_str(), line.event_id.as_str())).collect()
}

impl Page<'_> {
    /// The batch, and which of its statements counts.
    pub(super) fn statements(&self) -> Result<(Vec<Statement>, usize), SqlError> {
        let mut statements = Vec::new();
        if !self.absent.is_empty() {
            let events = json_rows(self.absent)?;
            statements.push(Statement::new(INSERT_EVENTS, vec![events.into(), self.token.into()]));
            let dispatches: Vec<Belonging<'_, DispatchLine>> =
                self.absent.iter().flat_map(|line| of(line, &line.dispatches)).collect();
            let values = vec![json_rows(&dispatches)?.into(), self.token.into(), self.now.into()];
            statements.push(Statement::new(INSERT_DISPATCHES, values));
            let incidents: Vec<Belonging<'_, IncidentLine>> =
                self.absent.iter().flat_map(|line| of(line, &line.incidents)).collect();
            let values = vec![json_rows(&incidents)?.into(), self.token.into()];
            statements.push(Statement::new(INSERT_INCIDENTS, values));
        }
        let targets = json_rows(&self.targets())?;
        if !self.topics.is_empty() {
            let values =
                || vec![targets.as_str().into(), self.replay_of.into(), self.token.into(), self.now.into()];
            statements.push(Statement::new(&REPEAT, values()));
            statements.push(Statement::new(&INSERT_REPEATED, values()));
            let values = vec![targets.as_str().into(), self.token.into(), self.now.into()];
            statements.push(Statement::new(&RETRY_REPEATED, values));
        }
        let values = vec![json_rows(&keys(self.all))?.into(), targets.into(), self.token.into()];
        statements.push(Statement::new(COUNT_RESTORED, values));
        let last = statements.len() - 1;
        Ok((statements, last))
    }

    fn targets(&self) -> Vec<Target<'_>> {
        let targets = self.all.iter().flat_map(|line| self.topics.iter().map(move |topic| (line, topic)));
        targets
            .map(|(line, topic)| Target {
                tenant_id: &line.tenant_id,
                event_id: &line.event_id,
                topic,
                incident_id: incident_id_of(&line.tenant_id, &line.event_id, topic.as_str()),
            })
            .collect()
    }
}

fn of<'a, T>(line: &'a Line, items: &'a [T]) -> impl Iterator<Item = Belonging<'a, T>> {
    items.iter().map(|item| Belonging { tenant_id: &line.tenant_id, event_id: &line.event_id, item })
}
