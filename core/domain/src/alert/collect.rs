//! From incidents that are due to alerts that are written down, in an order that survives dying anywhere.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::groups::group;
use super::overdue::{Overdue, find_overdue};
use super::{Alerted, Alerter, LANE_MARGIN_MS};
use crate::incident::IncidentState;
use crate::join::join_all;
use crate::lane::{Lane, is_ours};
use crate::ledger::{batch_with_retry, json_rows, outcome};
use crate::limits::{ALERT_ERROR_CHARS_MAX, ALERT_INCIDENTS_MAX};
use crate::ports::{Clock, Sinks, Sql, SqlError, Statement};
use crate::time::Timestamp;

/// Alerts in one statement, so that its parameter stays within 2 MB.
const ALERTS_PER_STATEMENT: usize = 200;

/// Reads the incidents that are due, oldest first.
pub const DUE_INCIDENTS: &str = "
    SELECT incident_id, tenant_id, topic, source_queue, status, substr(error_message, 1, ?3) AS error, alert_at, alerted_at
      FROM dlq_incidents WHERE alert_at < ?1 ORDER BY alert_at LIMIT ?2";

/// Writes alerts down, once each, unless the lane has gone to another run.
pub const INSERT_ALERTS: &str = "
    INSERT INTO alerts (alert_id, sink, body, next_retry_at, created_at)
    SELECT value ->> 'alert_id', value ->> 'sink', value ->> 'body', ?2, ?2
      FROM json_each(?1)
     WHERE EXISTS (SELECT 1 FROM lanes WHERE lane = ?3 AND holder = ?4)
    ON CONFLICT (alert_id) DO NOTHING";

/// Writes down which incidents of a shard these alerts tell of.
pub const INSERT_MARKS: &str = "
    INSERT INTO alert_marks (shard, incidents, told_at)
    SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM lanes WHERE lane = ?4 AND holder = ?5)
    ON CONFLICT (shard) DO NOTHING";

/// Reads which incidents are still to be marked.
pub const READ_MARKS: &str = "SELECT shard, incidents, told_at FROM alert_marks";

/// Marks incidents as told of, unless they have failed anew or were closed since. Whoever is still open then is told of
/// again.
pub static MARK_TOLD: LazyLock<String> = LazyLock::new(|| {
    let closed = closed_states();
    format!(
        "UPDATE dlq_incidents
            SET alerted_at = CASE WHEN status IN ({closed}) THEN alerted_at ELSE ?2 END,
                alert_at = CASE WHEN status IN ({closed}) THEN NULL ELSE ?3 END
           FROM json_each(?1) k
          WHERE incident_id = k.value ->> 'id' AND alert_at = k.value ->> 'at'"
    )
});

/// Forgets which incidents were to be marked.
pub const CLEAR_MARKS: &str = "DELETE FROM alert_marks WHERE shard = ?1 AND told_at = ?2";

fn closed_states() -> String {
    let closed = IncidentState::ALL.into_iter().filter(|state| is_closed(*state));
    closed.map(|state| format!("'{}'", state.name())).collect::<Vec<_>>().join(", ")
}

/// Whether nobody needs to hear of an incident any more.
pub(super) fn is_closed(state: IncidentState) -> bool {
    matches!(state, IncidentState::Resolved | IncidentState::Ignored)
}

/// An incident that is due.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct DueIncident {
    pub incident_id: String,
    pub tenant_id: String,
    pub topic: String,
    pub source_queue: String,
    pub status: IncidentState,
    pub error: String,
    pub alert_at: Timestamp,
    pub alerted_at: Option<Timestamp>,
}

/// The incidents of a shard whose alerts are written down.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Marks {
    pub shard: usize,
    pub incidents: String,
    pub told_at: Timestamp,
}

/// What a look at a shard has shown.
#[derive(Debug)]
pub(super) struct Look {
    pub shard: usize,
    pub incidents: Vec<DueIncident>,
    pub overdue: Vec<Overdue>,
    /// Whether there may be more incidents than that.
    pub more: bool,
}

/// An alert on its way into the ledger.
#[derive(Clone, Debug, Serialize)]
pub(super) struct AlertRow {
    pub alert_id: String,
    pub sink: String,
    pub body: String,
}

#[derive(Serialize)]
struct Mark<'a> {
    id: &'a str,
    at: Timestamp,
}

pub(super) fn read_marks() -> Statement {
    Statement::new(READ_MARKS, Vec::new())
}

/// The statements that write alerts down.
pub(super) fn insert_alerts(
    alerts: &[AlertRow],
    now: Timestamp,
    lane: &Lane,
) -> Result<Vec<Statement>, SqlError> {
    let statement = |alerts: &[AlertRow]| {
        let rows = json_rows(alerts)?;
        let values = vec![rows.into(), now.into(), lane.name.as_str().into(), lane.holder.as_str().into()];
        Ok(Statement::new(INSERT_ALERTS, values))
    };
    alerts.chunks(ALERTS_PER_STATEMENT).map(statement).collect()
}

impl<S: Sql, K: Sinks, C: Clock> Alerter<'_, S, K, C> {
    /// Looks at every shard that has nothing left from an earlier round. A shard that does not answer holds up no other.
    pub(super) async fn look(&self, unmarked: &[Marks], alerted: &mut Alerted) -> Vec<Look> {
        let now = self.clock.now();
        let ready = self.ledger.shards().filter(|(number, _)| unmarked.iter().all(|m| m.shard != *number));
        let looks = ready.map(async |(number, shard)| {
            let statements = vec![due_incidents(now), find_overdue(now, self.ages.outbox_ms)];
            let outcomes = batch_with_retry(shard, statements).await?;
            let incidents: Vec<DueIncident> = outcome(&outcomes, 0)?.decode()?;
            let more = incidents.len() == ALERT_INCIDENTS_MAX;
            Ok(Look { shard: number, incidents, overdue: outcome(&outcomes, 1)?.decode()?, more })
        });
        let mut looked = Vec::new();
        for look in join_all(looks).await {
            match look {
                Ok(look) => looked.push(look),
                Err(error) => alerted.errors.push(error),
            }
        }
        looked
    }

    /// Writes the alerts of what was seen, and the list of the incidents. `None` if another run has taken over.
    pub(super) async fn tell(
        &self,
        lane: &Lane,
        looked: Vec<Look>,
        deadline: Timestamp,
        alerted: &mut Alerted,
    ) -> Result<Option<Vec<Marks>>, SqlError> {
        let now = self.clock.now();
        let mut marks = Vec::new();
        for look in looked.iter().filter(|look| !look.incidents.is_empty()) {
            let list = look.incidents.iter().map(|due| Mark { id: &due.incident_id, at: due.alert_at });
            let incidents = json_rows(&list.collect::<Vec<_>>())?;
            marks.push(Marks { shard: look.shard, incidents, told_at: now });
        }
        if marks.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let incidents = looked.into_iter().flat_map(|look| look.incidents);
        let groups = group(incidents.filter(|due| !is_closed(due.status)), self.ages.open_ms);
        let mut alerts = Vec::new();
        for group in &groups {
            let body = group.document(now).encode()?;
            alerts.extend(self.configured.iter().map(|sink| AlertRow {
                alert_id: group.alert_id(&sink.name),
                sink: sink.name.clone(),
                body: body.clone(),
            }));
        }
        let mut statements = insert_alerts(&alerts, now, lane)?;
        for mark in &marks {
            statements.push(insert_marks(mark, lane));
        }
        statements.push(lane.renew(deadline.plus_ms(LANE_MARGIN_MS)));
        let last = statements.len() - 1;
        let outcomes = batch_with_retry(self.first(), statements).await?;
        if !is_ours(outcome(&outcomes, last)?) {
            return Ok(None);
        }
        alerted.incidents += groups.iter().map(|group| group.count()).sum::<usize>();
        alerted.raised.extend(groups.iter().map(|group| group.headline()));
        Ok(Some(marks))
    }

    /// Marks the incidents of alerts that are written down, all shards at once, and returns what could not be marked.
    pub(super) async fn mark(&self, marks: Vec<Marks>, alerted: &mut Alerted) -> Vec<Marks> {
        let marking = marks.into_iter().map(async |mark| match self.mark_shard(&mark).await {
            Ok(()) => None,
            Err(error) => Some((mark, error)),
        });
        let failed = join_all(marking).await.into_iter().flatten();
        let (left, errors): (Vec<Marks>, Vec<SqlError>) = failed.unzip();
        alerted.errors.extend(errors);
        left
    }

    async fn mark_shard(&self, marks: &Marks) -> Result<(), SqlError> {
        let again = marks.told_at.plus_ms(self.ages.open_ms);
        let values = vec![marks.incidents.as_str().into(), marks.told_at.into(), again.into()];
        let shard = self.ledger.shard(marks.shard);
        batch_with_retry(shard, vec![Statement::new(&MARK_TOLD, values)]).await?;
        let clear = vec![shard_number(marks.shard).into(), marks.told_at.into()];
        batch_with_retry(self.first(), vec![Statement::new(CLEAR_MARKS, clear)]).await.map(|_| ())
    }
}

/// Only minutes that are over: a topic's failures of a minute are told of together.
fn due_incidents(now: Timestamp) -> Statement {
    let values = vec![
        now.minute().into(),
        (ALERT_INCIDENTS_MAX as i64).into(),
        (ALERT_ERROR_CHARS_MAX as i64 + 1).into(),
    ];
    Statement::new(DUE_INCIDENTS, values)
}

fn insert_marks(marks: &Marks, lane: &Lane) -> Statement {
    let values = vec![
        shard_number(marks.shard).into(),
        marks.incidents.as_str().into(),
        marks.told_at.into(),
        lane.name.as_str().into(),
        lane.holder.as_str().into(),
    ];
    Statement::new(INSERT_MARKS, values)
}

fn shard_number(shard: usize) -> i64 {
    i64::try_from(shard).unwrap_or(i64::MAX)
}
