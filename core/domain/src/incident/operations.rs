//! What operators do with one incident. An id says nothing about its shard, so every shard is asked, all at once; the
//! change itself is one batch in the shard that has it.
//!
//! Each operation carries a random id. It is written to the log in the batch that changes the incident, and no batch of an
//! operation whose id is in the log changes anything: one whose answer got lost may run again at any time.

use std::sync::LazyLock;

use serde::Deserialize;

use super::error::OperationError;
use super::record::{COLUMNS, Incident, rows_of_two};
use super::state::{IncidentEvent, sql_incident_after, sql_incident_before};
use crate::join::join_all;
use crate::ledger::{Ledger, batch_with_retry, outcome};
use crate::limits::OPERATION_NOTE_BYTES_MAX;
use crate::ports::{Sql, SqlError, Statement};
use crate::time::Timestamp;

/// Who does something, when, and the id by which it is recognized.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// Random, unique to the operation.
    pub id: &'a str,
    /// The operator's name.
    pub actor: &'a str,
    /// What they have to say about it.
    pub note: Option<&'a str>,
    /// Now.
    pub now: Timestamp,
}

/// The incidents of a ledger, in the hands of operators.
#[derive(Debug)]
pub struct Operations<'a, S> {
    /// Where they are.
    pub ledger: &'a Ledger<S>,
}

/// Finds an incident.
pub static FIND: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {COLUMNS} FROM dlq_incidents i WHERE i.incident_id = ?1"));

/// Takes an incident up. One that was let rest is due to be told of again: somebody has to deal with it after all.
pub static TRIAGE: LazyLock<String> = LazyLock::new(|| {
    decide(IncidentEvent::Triage, "resolved_at = NULL, resolved_by = NULL, alert_at = coalesce(alert_at, ?3)")
});

/// Lets an incident rest: nobody is told of it any more.
pub static IGNORE: LazyLock<String> =
    LazyLock::new(|| decide(IncidentEvent::Ignore, "resolved_at = ?3, resolved_by = ?4, alert_at = NULL"));

fn decide(event: IncidentEvent, also: &str) -> String {
    format!(
        "UPDATE dlq_incidents SET status = {after}, last_op = ?2, updated_at = ?3, {also}
          WHERE incident_id = ?1 AND status IN ({before}) AND NOT EXISTS (SELECT 1 FROM ops_log WHERE op_id = ?2)",
        after = sql_incident_after(event),
        before = sql_incident_before(event),
    )
}

/// Writes down what was done, if this operation did it.
pub const LOG_DECISION: &str = "
    INSERT INTO ops_log (op_id, at, actor, action, incident_id, note)
    SELECT ?2, ?3, ?4, ?5, incident_id, ?6 FROM dlq_incidents WHERE incident_id = ?1 AND last_op = ?2
    ON CONFLICT (op_id) DO NOTHING";

/// Reads an incident, and whether an operation has changed it.
pub static READ_DECIDED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {COLUMNS}, EXISTS (SELECT 1 FROM ops_log WHERE op_id = ?2) AS applied
           FROM dlq_incidents i WHERE i.incident_id = ?1"
    )
});

/// Whether an operation is in the log.
#[derive(Deserialize)]
pub(crate) struct Applied {
    applied: u8,
}

impl Applied {
    pub(crate) fn is_true(&self) -> bool {
        self.applied == 1
    }
}

impl<S: Sql> Operations<'_, S> {
    /// Takes an incident up. One call per shard, and one more.
    pub async fn triage(&self, incident_id: &str, op: &Operation<'_>) -> Result<Incident, OperationError> {
        let values = vec![incident_id.into(), op.id.into(), op.now.into()];
        self.decide(incident_id, op, IncidentEvent::Triage, Statement::new(&TRIAGE, values)).await
    }

    /// Lets an incident rest. One call per shard, and one more.
    pub async fn ignore(&self, incident_id: &str, op: &Operation<'_>) -> Result<Incident, OperationError> {
        let values = vec![incident_id.into(), op.id.into(), op.now.into(), op.actor.into()];
        self.decide(incident_id, op, IncidentEvent::Ignore, Statement::new(&IGNORE, values)).await
    }

    async fn decide(
        &self,
        incident_id: &str,
        op: &Operation<'_>,
        event: IncidentEvent,
        update: Statement,
    ) -> Result<Incident, OperationError> {
        check_note(op.note)?;
        let (shard, _) = find(self.ledger, incident_id).await?;
        let action = if event == IncidentEvent::Triage { "triage" } else { "ignore" };
        let log = vec![
            incident_id.into(),
            op.id.into(),
            op.now.into(),
            op.actor.into(),
            action.into(),
            op.note.into(),
        ];
        let read = Statement::new(&READ_DECIDED, vec![incident_id.into(), op.id.into()]);
        let statements = vec![update, Statement::new(LOG_DECISION, log), read];
        let outcomes = batch_with_retry(self.ledger.shard(shard), statements).await?;
        match rows_of_two::<Incident, Applied>(outcome(&outcomes, 2)?)?.pop() {
            Some((incident, applied)) if applied.is_true() => Ok(incident),
            Some((incident, _)) => Err(OperationError::Illegal { from: incident.status, event }),
            None => Err(OperationError::NotFound("incident")),
        }
    }
}

/// The incident with this id, and the number of its shard.
pub(crate) async fn find<S: Sql>(
    ledger: &Ledger<S>,
    incident_id: &str,
) -> Result<(usize, Incident), OperationError> {
    let statement = || Statement::new(&FIND, vec![incident_id.into()]);
    let rows = in_every_shard(ledger, || vec![statement()], |outcomes| outcome(outcomes, 0)?.decode());
    first_found(rows.await)
}

/// Asks every shard at once. Each answers with the rows that `read` finds in its outcomes.
pub(crate) async fn in_every_shard<S: Sql, T>(
    ledger: &Ledger<S>,
    statements: impl Fn() -> Vec<Statement>,
    read: impl Fn(&[crate::ports::Outcome]) -> Result<T, SqlError>,
) -> Vec<Result<T, SqlError>> {
    let answers = ledger.shards().map(async |(_, shard)| {
        let outcomes = batch_with_retry(shard, statements()).await?;
        read(&outcomes)
    });
    join_all(answers).await
}

/// The first row of any shard, with the number of the shard. A shard that does not answer matters only if no other has it.
pub(crate) fn first_found<T>(answers: Vec<Result<Vec<T>, SqlError>>) -> Result<(usize, T), OperationError> {
    let mut failed = None;
    for (number, answer) in answers.into_iter().enumerate() {
        match answer {
            Ok(rows) => {
                if let Some(row) = rows.into_iter().next() {
                    return Ok((number, row));
                }
            }
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.map_or(OperationError::NotFound("incident"), OperationError::Unavailable))
}

fn check_note(note: Option<&str>) -> Result<(), OperationError> {
    match note {
        Some(text) if text.len() > OPERATION_NOTE_BYTES_MAX => {
            Err(OperationError::invalid("note", format!("is longer than {OPERATION_NOTE_BYTES_MAX} bytes")))
        }
        _ => Ok(()),
    }
}
