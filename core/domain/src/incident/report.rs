//! Writing failures down. Whoever finds one reports it (the archiver a dead letter, the sweeper a dispatch that it gives up
//! or whose letter never came), in the batch that also moves the dispatch, so that the two always agree.
//!
//! The same failure may be reported any number of times: a report counts only if it tells of a later repetition of the
//! dispatch than the incident does.

use std::sync::LazyLock;

use serde::Serialize;

use super::state::{IncidentEvent, sql_incident_after};
use crate::ids::stable_hash;
use crate::ledger::{DispatchKey, json_rows};
use crate::ports::{SqlError, Statement};
use crate::time::Timestamp;

/// What kind of failure an incident tells of. The names are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A consumer gave up.
    DeadLetter,
    /// The queue never took it.
    Abandoned,
    /// A message that is not the gateway's.
    Foreign,
}

/// One failure of a dispatch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report<K = DispatchKey> {
    /// The dispatch. The sweeper also reports rows whose key is none, and then writes it as it stands.
    #[serde(flatten)]
    pub key: K,
    /// The incident's id, from [`incident_id`].
    pub incident_id: String,
    /// Who gave up.
    pub kind: Kind,
    /// The queue that the message came from.
    pub source_queue: String,
    /// Which repetition of the dispatch failed.
    pub generation: u32,
    /// Why; if nobody said, the ledger's last error stands in.
    pub error: Option<String>,
    /// Where in the consumer's code.
    pub stack: Option<String>,
}

/// A message that is not the gateway's, or that it cannot read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ForeignReport {
    /// The incident's id, from [`foreign_id`].
    pub incident_id: String,
    /// The queue that the message came from.
    pub source_queue: String,
    /// What is wrong with it.
    pub error: String,
    /// Its text, if it is short enough for a row.
    pub payload: Option<String>,
    /// Or where its bytes are.
    pub payload_ref: Option<String>,
}

/// The id of a dispatch's incident: there is never a second one.
pub fn incident_id(key: &DispatchKey) -> String {
    incident_id_of(&key.tenant_id, &key.event_id, key.topic.as_str())
}

/// The same id from the parts of the key.
pub fn incident_id_of(tenant_id: &str, event_id: &str, topic: &str) -> String {
    format!("inc_{}", stable_hash(&["dispatch", tenant_id, event_id, topic]))
}

/// The id of the incident of a message that is not ours.
pub fn foreign_id(source_queue: &str, bytes: &[u8]) -> String {
    format!("inc_{}", stable_hash(&["foreign".as_bytes(), source_queue.as_bytes(), bytes]))
}

/// Reports failures of dispatches that the same batch, or an earlier one, has brought to rest. One that came to rest in another
/// way meanwhile has, or will have, the report of that.
pub static REPORT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO dlq_incidents (incident_id, kind, tenant_id, event_id, topic, type, source_queue, error_message,
                                    error_stack, generation, payload, payload_ref, alert_at, created_at, updated_at)
         SELECT k.value ->> 'incident_id', k.value ->> 'kind', d.tenant_id, d.event_id, d.topic, l.type,
                k.value ->> 'source_queue', coalesce(k.value ->> 'error', d.last_error, 'no error was recorded'),
                k.value ->> 'stack', d.replays, l.payload, l.payload_ref, ?2, ?2, ?2
           FROM json_each(?1) k
           JOIN event_dispatches d ON d.tenant_id = k.value ->> 'tenant_id' AND d.event_id = k.value ->> 'event_id'
                                  AND d.topic = k.value ->> 'topic' AND d.replays = k.value ->> 'generation'
                                  AND d.status = CASE k.value ->> 'kind' WHEN 'abandoned' THEN 'dlq_abandoned'
                                                                         ELSE 'dead_lettered' END
           JOIN event_ledger l ON l.tenant_id = d.tenant_id AND l.event_id = d.event_id
          WHERE true
         ON CONFLICT (incident_id) DO UPDATE
            SET status = {after}, kind = excluded.kind, generation = excluded.generation,
                retry_count = dlq_incidents.retry_count + 1, source_queue = excluded.source_queue,
                error_message = excluded.error_message, error_stack = excluded.error_stack,
                alert_at = ?2, resolved_at = NULL, resolved_by = NULL, updated_at = ?2
          WHERE dlq_incidents.generation < excluded.generation",
        after = sql_incident_after(IncidentEvent::Report),
    )
});

/// Reports messages that are not ours. They belong to no tenant, so they go to the first shard.
pub const REPORT_FOREIGN: &str = "
    INSERT INTO dlq_incidents (incident_id, kind, tenant_id, event_id, topic, source_queue, error_message, payload,
                               payload_ref, alert_at, created_at, updated_at)
    SELECT value ->> 'incident_id', 'foreign', '', '', '', value ->> 'source_queue', value ->> 'error',
           value ->> 'payload', value ->> 'payload_ref', ?2, ?2, ?2
      FROM json_each(?1)
     WHERE true
    ON CONFLICT (incident_id) DO NOTHING";

/// The statement that reports these failures, all of one shard.
pub fn report<K: Serialize>(reports: &[Report<K>], now: Timestamp) -> Result<Statement, SqlError> {
    Ok(Statement::new(&REPORT, vec![json_rows(reports)?.into(), now.into()]))
}

/// The statement that reports these foreign messages.
pub fn report_foreign(reports: &[ForeignReport], now: Timestamp) -> Result<Statement, SqlError> {
    Ok(Statement::new(REPORT_FOREIGN, vec![json_rows(reports)?.into(), now.into()]))
}
