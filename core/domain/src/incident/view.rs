//! Looking at one incident: the failure, the message, and what operators have done.

use std::sync::LazyLock;

use serde::Deserialize;

use super::error::OperationError;
use super::operations::{Operations, first_found, in_every_shard};
use super::record::{COLUMNS, Incident, IncidentDetails, LogEntry, rows_of_two};
use crate::ledger::outcome;
use crate::limits::INCIDENT_LOG_MAX;
use crate::ports::{Outcome, Sql, SqlError, Statement};

/// Reads an incident with everything that belongs to it.
pub static VIEW: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {COLUMNS}, i.payload, i.payload_ref, i.error_stack FROM dlq_incidents i WHERE i.incident_id = ?1"
    )
});

/// Reads the last things that operators have done with an incident.
pub const READ_LOG: &str = "
    SELECT at, actor, action, replay_id, note FROM ops_log WHERE incident_id = ?1 ORDER BY at DESC LIMIT ?2";

#[derive(Deserialize)]
struct Message {
    payload: Option<String>,
    payload_ref: Option<String>,
    error_stack: Option<String>,
}

impl<S: Sql> Operations<'_, S> {
    /// Everything about one incident. One call per shard, all at once.
    pub async fn view(&self, incident_id: &str) -> Result<IncidentDetails, OperationError> {
        let limit = i64::try_from(INCIDENT_LOG_MAX).unwrap_or(i64::MAX);
        let statements = || {
            vec![
                Statement::new(&VIEW, vec![incident_id.into()]),
                Statement::new(READ_LOG, vec![incident_id.into(), limit.into()]),
            ]
        };
        first_found(in_every_shard(self.ledger, statements, details).await).map(|(_, details)| details)
    }
}

fn details(outcomes: &[Outcome]) -> Result<Vec<IncidentDetails>, SqlError> {
    let found = rows_of_two::<Incident, Message>(outcome(outcomes, 0)?)?.pop();
    let Some((incident, message)) = found else { return Ok(Vec::new()) };
    let mut log: Vec<LogEntry> = outcome(outcomes, 1)?.decode()?;
    log.reverse();
    Ok(vec![IncidentDetails {
        incident,
        payload: message.payload,
        payload_ref: message.payload_ref,
        error_stack: message.error_stack,
        log,
    }])
}
