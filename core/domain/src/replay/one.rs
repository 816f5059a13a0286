//! Replaying one incident.

use std::sync::LazyLock;

use serde::Deserialize;

use super::moving::{LOG_ONE, MOVE_ONE, RETRY_ONE, Target};
use super::sending::Replayer;
use crate::claim::{Claimant, Claims, read_named};
use crate::incident::{
    COLUMNS, Incident, IncidentEvent, Kind, NotReplayable, Operation, OperationError, find, rows_of_two,
};
use crate::ledger::{DispatchKey, batch_with_retry, json_rows, outcome};
use crate::ports::{Clock, Queues, Sql, SqlError, Statement};
use crate::states::DispatchState;
use crate::topic::Topic;

/// Reads an incident, whether an operation has replayed it, and how its dispatch stands.
pub static READ_ONE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {COLUMNS}, EXISTS (SELECT 1 FROM ops_log WHERE op_id = ?2) AS applied, d.status AS dispatch
           FROM dlq_incidents i
           LEFT JOIN event_dispatches d ON d.tenant_id = i.tenant_id AND d.event_id = i.event_id AND d.topic = i.topic
          WHERE i.incident_id = ?1"
    )
});

/// What came of replaying one incident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The incident, on its way.
    pub incident: Incident,
    /// Why the outcome of the send could not be recorded. The event is sent once more then, and its consumer drops the second.
    pub unrecorded: Option<SqlError>,
}

/// How an operation has fared with an incident.
#[derive(Deserialize)]
struct Standing {
    applied: u8,
    dispatch: Option<DispatchState>,
}

impl<S: Sql, Q: Queues, C: Clock> Replayer<'_, S, Q, C> {
    /// Has the event of an incident sent once more: one call per shard to find it, one to move it, one to send it, one to
    /// record the send. A crash after the second leaves the send to the sweeper.
    pub async fn replay_one(
        &self,
        incident_id: &str,
        op: &Operation<'_>,
    ) -> Result<Replayed, OperationError> {
        let (shard, found) = find(self.ledger, incident_id).await?;
        let claimant = Claimant::new(op.id, op.now);
        // What is no topic is a foreign message's, and has no dispatch.
        let Ok(topic) = Topic::try_from(found.topic.clone()) else {
            return Err(OperationError::NotReplayable(NotReplayable::Foreign));
        };
        let key = DispatchKey { tenant_id: found.tenant_id, event_id: found.event_id, topic };
        let targets = json_rows(&[Target { key, incident_id: found.incident_id }])?;
        let statements = statements(incident_id, targets, &claimant, op);
        let outcomes = batch_with_retry(self.ledger.shard(shard), statements).await?;
        let row = rows_of_two::<Incident, Standing>(outcome(&outcomes, 3)?)?.pop();
        let (incident, standing) = row.ok_or(OperationError::NotFound("incident"))?;
        let incident = standing.replayed(incident)?;
        let sent = self.send(Claims::read(outcome(&outcomes, 4)?)?, &claimant).await;
        Ok(Replayed { incident, unrecorded: sent.err() })
    }
}

fn statements(incident_id: &str, targets: String, claimant: &Claimant, op: &Operation<'_>) -> Vec<Statement> {
    let moving = vec![targets.as_str().into(), claimant.until.into(), op.id.into(), op.now.into()];
    let mut with_actor = moving.clone();
    with_actor.push(op.actor.into());
    vec![
        Statement::new(&MOVE_ONE, moving),
        Statement::new(&RETRY_ONE, with_actor.clone()),
        Statement::new(&LOG_ONE, with_actor),
        Statement::new(&READ_ONE, vec![incident_id.into(), op.id.into()]),
        read_named(targets, claimant),
    ]
}

impl Standing {
    /// The incident, if this operation has replayed it; else why it could not.
    fn replayed(&self, incident: Incident) -> Result<Incident, OperationError> {
        let from = incident.status;
        if self.applied == 1 {
            return Ok(incident);
        }
        if incident.kind == Kind::Foreign {
            return Err(OperationError::NotReplayable(NotReplayable::Foreign));
        }
        if from.after(IncidentEvent::Replay).is_err() {
            return Err(OperationError::Illegal { from, event: IncidentEvent::Replay });
        }
        let reason = self.dispatch.map_or(NotReplayable::Gone, NotReplayable::OnItsWay);
        Err(OperationError::NotReplayable(reason))
    }
}
