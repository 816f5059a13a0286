//! The statements that move dispatches and incidents for a replay. One incident and a page of many go through the same
//! ones; they differ in what keeps a batch from counting twice.
//!
//! Every batch moves the dispatches first, then the incidents of the dispatches that it has moved, then writes the log, so
//! that a dispatch and its incident always agree. Parameters are the same throughout: ?1 the targets, ?2 the end of the
//! claim, ?3 the operation, ?4 now; of one incident ?5 the operator; of many ?5 the replay, ?6 the step that they take,
//! ?7 the operator.

use std::sync::LazyLock;

use serde::Serialize;

use crate::history::sql_replayed;
use crate::incident::{IncidentEvent, sql_incident_after, sql_incident_before};
use crate::ledger::DispatchKey;
use crate::states::{DispatchEvent, DispatchState};

/// A dispatch to be moved, and the incident that there is or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Target {
    #[serde(flatten)]
    pub(crate) key: DispatchKey,
    pub(crate) incident_id: String,
}

/// What the batches of a kind have in common.
struct Batch {
    /// Holds until the batch has been carried out.
    guard: &'static str,
    actor: &'static str,
    replay_id: &'static str,
    /// The id of a log entry.
    op_id: &'static str,
}

const ONE: Batch = Batch {
    guard: "NOT EXISTS (SELECT 1 FROM ops_log o WHERE o.op_id = ?3)",
    actor: "?5",
    replay_id: "NULL",
    op_id: "?3",
};

const MANY: Batch = Batch {
    guard: "EXISTS (SELECT 1 FROM replay_progress p WHERE p.replay_id = ?5 AND p.steps = ?6)",
    actor: "?7",
    replay_id: "?5",
    op_id: "?5 || '/' || i.incident_id",
};

/// Sends a dispatch once more whose incident may be replayed.
pub static MOVE_ONE: LazyLock<String> = LazyLock::new(|| ONE.move_dispatches(OF_INCIDENT, INCIDENT_MAY));
/// Moves the incident of that dispatch.
pub static RETRY_ONE: LazyLock<String> = LazyLock::new(|| ONE.retry_incidents());
/// Writes down who did it.
pub static LOG_ONE: LazyLock<String> = LazyLock::new(|| ONE.log());

/// Sends dispatches once more whose incidents may be replayed and that this replay has not moved before: one that failed
/// again meanwhile, and that somebody then took up, stands in a state that the replay is yet to come to.
pub static MOVE_INCIDENTS: LazyLock<String> =
    LazyLock::new(|| MANY.move_dispatches(OF_INCIDENT, INCIDENT_MAY_ONCE));
/// Sends dispatches once more, whether they have an incident or not.
pub static MOVE_EVENTS: LazyLock<String> = LazyLock::new(|| MANY.move_dispatches("?5", "true"));
/// Moves the incidents of the dispatches that this step has moved.
pub static RETRY_INCIDENTS: LazyLock<String> = LazyLock::new(|| MANY.retry_incidents());
/// Writes down which incidents a step has moved.
pub static LOG_MOVED: LazyLock<String> = LazyLock::new(|| MANY.log());

/// Makes the dispatches that an event never had.
pub static INSERT_MISSING: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO event_dispatches (tenant_id, event_id, topic, status, next_retry_at, claimed_by, replays, replay_of,
                                       created_at, updated_at)
         SELECT l.tenant_id, l.event_id, k.value ->> 'topic', '{pending}', ?2, ?3, 1, ?5, ?4, ?4
           FROM json_each(?1) k
           JOIN event_ledger l ON l.tenant_id = k.value ->> 'tenant_id' AND l.event_id = k.value ->> 'event_id'
          WHERE {guard}
         ON CONFLICT (tenant_id, event_id, topic) DO NOTHING",
        pending = DispatchState::Pending.name(),
        guard = MANY.guard,
    )
});

/// Takes a step: what it has moved counts together with the place that it has come to. ?4 is how many targets it had, ?7 to
/// ?9 are that place.
pub static TAKE_STEP: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE replay_progress SET steps = steps + 1, last_op = ?3, position = ?7, after_at = ?8, after_seq = ?9,
                seen = seen + ?4,
                moved = moved + (SELECT count(*) FROM json_each(?1) k
                                   JOIN event_dispatches d ON {key} AND d.claimed_by = ?3 AND d.next_retry_at = ?2)
          WHERE replay_id = ?5 AND steps = ?6",
        key = key_of("d"),
    )
});

const OF_INCIDENT: &str = "k.value ->> 'incident_id'";

const INCIDENT_MAY: &str = "EXISTS (SELECT 1 FROM dlq_incidents i
                     WHERE i.incident_id = k.value ->> 'incident_id' AND i.status IN ({before}))";

const INCIDENT_MAY_ONCE: &str = "EXISTS (SELECT 1 FROM dlq_incidents i
                     WHERE i.incident_id = k.value ->> 'incident_id' AND i.status IN ({before})
                       AND NOT EXISTS (SELECT 1 FROM ops_log l WHERE l.op_id = ?5 || '/' || i.incident_id))";

impl Batch {
    fn move_dispatches(&self, replay_of: &str, condition: &str) -> String {
        format!(
            "UPDATE event_dispatches
                SET status = '{pending}', replays = replays + 1, attempts = 0, starts = 0, lease = NULL,
                    lease_holder = NULL, last_error = NULL, replay_of = {replay_of}, next_retry_at = ?2, claimed_by = ?3,
                    history = {history}, updated_at = ?4
               FROM json_each(?1) k
              WHERE {key} AND event_dispatches.status IN ({at_rest}) AND {condition} AND {guard}",
            pending = DispatchState::Pending.name(),
            history = sql_replayed("?4", replay_of),
            key = key_of("event_dispatches"),
            at_rest = sql_at_rest(),
            condition = condition.replace("{before}", &sql_incident_before(IncidentEvent::Replay)),
            guard = self.guard,
        )
    }

    fn retry_incidents(&self) -> String {
        format!(
            "UPDATE dlq_incidents
                SET status = {after}, last_op = ?3, replayed_at = ?4, resolved_at = NULL, resolved_by = {actor},
                    updated_at = ?4
               FROM json_each(?1) k
              WHERE incident_id = k.value ->> 'incident_id' AND +status IN ({before})
                AND EXISTS (SELECT 1 FROM event_dispatches d
                             WHERE d.tenant_id = dlq_incidents.tenant_id AND d.event_id = dlq_incidents.event_id
                               AND d.topic = dlq_incidents.topic AND d.claimed_by = ?3 AND d.next_retry_at = ?2)
                AND {guard}",
            after = sql_incident_after(IncidentEvent::Replay),
            actor = self.actor,
            before = sql_incident_before(IncidentEvent::Replay),
            guard = self.guard,
        )
    }

    fn log(&self) -> String {
        format!(
            "INSERT INTO ops_log (op_id, at, actor, action, incident_id, replay_id)
             SELECT {op_id}, ?4, {actor}, 'replay', i.incident_id, {replay_id}
               FROM json_each(?1) k JOIN dlq_incidents i ON i.incident_id = k.value ->> 'incident_id'
              WHERE i.last_op = ?3 AND {guard}
             ON CONFLICT (op_id) DO NOTHING",
            op_id = self.op_id,
            actor = self.actor,
            replay_id = self.replay_id,
            guard = self.guard,
        )
    }
}

/// The states that a replay may leave and in which nobody is about to act: what is on its way arrives without help, and
/// must not be taken away from the consumer that is handling it.
fn sql_at_rest() -> String {
    let at_rest = DispatchState::ALL
        .into_iter()
        .filter(|state| state.after(DispatchEvent::Replay).is_ok() && !state.is_live());
    at_rest.map(|state| format!("'{}'", state.name())).collect::<Vec<_>>().join(", ")
}

fn key_of(table: &str) -> String {
    ["tenant_id", "event_id", "topic"]
        .map(|column| format!("{table}.{column} = k.value ->> '{column}'"))
        .join(" AND ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_at_rest_is_replayed() {
        assert_eq!(sql_at_rest(), "'delivered', 'dead_lettered', 'dlq_abandoned'");
        assert!(MOVE_ONE.contains("i.status IN ('open', 'triaged')"));
    }
}
