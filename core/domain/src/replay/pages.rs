//! How far a replay of many has come in a shard, and what comes next there.
//!
//! A replay walks along one index, oldest first, and never turns back: that of the tenant, that of each state in turn, or
//! for events that of the tenants. The place that it has come to is a row beside the data, so that it changes together with
//! what is moved.

use std::sync::LazyLock;

use serde::Deserialize;

use super::create::Of;
use super::job::Job;
use super::moving::Target;
use super::pace::step_size;
use crate::incident::{
    Filter, IncidentEvent, IncidentState, REST_OF_FILTER, incident_id, rest_of_filter, walks,
};
use crate::ledger::{DispatchKey, outcome};
use crate::ports::{Outcome, SQL_INTEGER_MAX, SqlError, Statement, Value};
use crate::time::Timestamp;
use crate::topic::Topic;

/// Begins a replay in a shard.
pub const OPEN_PROGRESS: &str = "
    INSERT INTO replay_progress (replay_id, position, after_at, after_seq) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (replay_id) DO NOTHING";

/// Reads how far a replay has come in a shard.
pub const READ_PROGRESS: &str = "SELECT steps, last_op, position FROM replay_progress WHERE replay_id = ?1";

/// The next incidents of the state that a replay goes through.
pub static NEXT_INCIDENTS_BY_STATUS: LazyLock<String> = LazyLock::new(|| next_incidents("status"));
/// The next incidents of the tenant that a replay goes through.
pub static NEXT_INCIDENTS_BY_TENANT: LazyLock<String> = LazyLock::new(|| next_incidents("tenant_id"));

fn next_incidents(column: &str) -> String {
    format!(
        "SELECT i.incident_id, i.tenant_id, i.event_id, i.topic, i.created_at AS at, i.seq
           FROM replay_progress p
           JOIN dlq_incidents i ON i.{column} = p.position AND (i.created_at, i.seq) > (p.after_at, p.after_seq)
          WHERE {REST_OF_FILTER} AND p.replay_id = ?6 AND i.created_at < ?7 AND i.kind <> 'foreign'
          ORDER BY i.created_at, i.seq LIMIT ?8"
    )
}

/// What a filter says of events beyond their tenants: ?1 type, ?2 a topic that they have gone to, ?3 and ?4
/// times, ?5 their id.
pub(crate) const FILTER_OF_EVENTS: &str = "(?1 IS NULL OR l.type = ?1)
       AND (?2 IS NULL OR EXISTS (SELECT 1 FROM event_dispatches d
                                   WHERE d.tenant_id = l.tenant_id AND d.event_id = l.event_id AND d.topic = ?2))
       AND l.created_at >= ?3 AND l.created_at < ?4 AND (?5 IS NULL OR l.event_id = ?5)";

/// The next events of the tenants that a replay goes through.
pub static NEXT_EVENTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT l.tenant_id, l.event_id, l.created_at AS at, l.seq
           FROM replay_progress p
           JOIN event_ledger l ON (l.tenant_id, l.created_at, l.seq) > (p.position, p.after_at, p.after_seq)
          WHERE {FILTER_OF_EVENTS} AND p.replay_id = ?6 AND l.tenant_id <= ?7
          ORDER BY l.tenant_id, l.created_at, l.seq LIMIT ?8"
    )
});

/// Sorts behind every tenant's id.
const BEHIND_ALL_TENANTS: &str = "~";

/// A place on the way through a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// None at the end.
    pub(crate) position: Option<String>,
    pub(crate) after_at: Timestamp,
    pub(crate) after_seq: i64,
}

/// What the next step in a shard is about.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// How many steps were taken before.
    pub(crate) steps: i64,
    /// The last of them.
    pub(crate) last_op: Option<String>,
    /// What to move.
    pub(crate) targets: Vec<Target>,
    /// Where the replay is when that is done; none if there is nothing left to do.
    pub(crate) next: Option<Place>,
}

#[derive(Deserialize)]
struct ProgressRow {
    steps: i64,
    last_op: Option<String>,
    position: Option<String>,
}

/// An incident, or an event with its dispatches still to come.
#[derive(Deserialize)]
struct PageRow {
    tenant_id: String,
    event_id: String,
    topic: Option<Topic>,
    incident_id: Option<String>,
    at: Timestamp,
    seq: i64,
}

/// The way of a replay through a shard.
pub(crate) struct Walk<'a> {
    job: &'a Job,
    next: &'static str,
    positions: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    pub(crate) fn of(job: &'a Job) -> Self {
        let (next, positions) = match job.of {
            Of::Incidents => walks(&job.filter, &NEXT_INCIDENTS_BY_STATUS, &NEXT_INCIDENTS_BY_TENANT),
            Of::Events => (NEXT_EVENTS.as_str(), vec![tenants(&job.filter).0]),
        };
        Self { job, next, positions }
    }

    /// The statement that begins this way, unless it has begun.
    pub(crate) fn open(&self) -> Statement {
        let values = vec![
            self.job.replay_id.as_str().into(),
            self.positions.first().copied().into(),
            self.since().into(),
            // Events that came back from the archive stand below zero.
            (-SQL_INTEGER_MAX).into(),
        ];
        Statement::new(OPEN_PROGRESS, values)
    }

    /// The statements that [`Self::page`] reads.
    pub(crate) fn look(&self) -> Result<[Statement; 2], SqlError> {
        let replay_id = self.job.replay_id.as_str();
        let until = self.job.until();
        let limit = i64::try_from(self.rows()).unwrap_or(i64::MAX);
        let values = match self.job.of {
            Of::Incidents => {
                let mut values = rest_of_filter(&self.job.filter)?;
                values.extend([replay_id.into(), until.into(), limit.into()]);
                values
            }
            Of::Events => {
                let mut values = filter_of_events(&self.job.filter, until);
                values.extend([replay_id.into(), tenants(&self.job.filter).1.into(), limit.into()]);
                values
            }
        };
        Ok([Statement::new(READ_PROGRESS, vec![replay_id.into()]), Statement::new(self.next, values)])
    }

    /// What comes next, from the outcomes of the statements of [`Self::look`], the first of which is at `index`.
    pub(crate) fn page(&self, outcomes: &[Outcome], index: usize) -> Result<Page, SqlError> {
        let progress = outcome(outcomes, index)?.decode::<ProgressRow>()?.pop();
        let progress = progress.ok_or_else(|| SqlError::Failed("a replay's progress is gone".to_owned()))?;
        let rows: Vec<PageRow> = outcome(outcomes, index + 1)?.decode()?;
        let next = progress.position.as_deref().map(|position| self.after(position, &rows));
        let targets = rows.into_iter().flat_map(|row| self.targets(row)).collect();
        Ok(Page { steps: progress.steps, last_op: progress.last_op, targets, next })
    }

    /// A page that is not full is the last of its position.
    fn after(&self, position: &str, rows: &[PageRow]) -> Place {
        match rows.last() {
            Some(last) if rows.len() == self.rows() => {
                let position = if self.job.of == Of::Events { &last.tenant_id } else { position };
                Place { position: Some(position.to_owned()), after_at: last.at, after_seq: last.seq }
            }
            _ => {
                let following = self.positions.iter().skip_while(|one| **one != position).nth(1);
                let position = following.map(|position| (*position).to_owned());
                Place { position, after_at: self.since(), after_seq: 0 }
            }
        }
    }

    fn targets(&self, row: PageRow) -> Vec<Target> {
        let topics = match (&row.topic, &self.job.topics) {
            (Some(topic), _) => std::slice::from_ref(topic),
            (None, Some(topics)) => topics,
            (None, None) => &[],
        };
        let target = |topic: &Topic| {
            let key = DispatchKey {
                tenant_id: row.tenant_id.clone(),
                event_id: row.event_id.clone(),
                topic: topic.clone(),
            };
            let incident_id = row.incident_id.clone().unwrap_or_else(|| incident_id(&key));
            Target { key, incident_id }
        };
        topics.iter().map(target).collect()
    }

    /// Rows of a page, so many that their messages make a step.
    fn rows(&self) -> usize {
        let topics = self.job.topics.as_ref().map_or(1, Vec::len).max(1);
        (step_size(self.job.rate_per_second) / topics).max(1)
    }

    fn since(&self) -> Timestamp {
        self.job.filter.since.unwrap_or(Timestamp::from_unix_ms(i64::MIN))
    }
}

/// The first and the last tenant that a filter means.
pub(crate) fn tenants(filter: &Filter) -> (&str, &str) {
    filter.tenant.as_deref().map_or(("", BEHIND_ALL_TENANTS), |tenant| (tenant, tenant))
}

/// The values of [`FILTER_OF_EVENTS`].
pub(crate) fn filter_of_events(filter: &Filter, until: Timestamp) -> Vec<Value> {
    let topic = filter.topic.as_ref().map(Topic::as_str);
    let since = filter.since.unwrap_or(Timestamp::from_unix_ms(i64::MIN));
    let event_id = filter.event_id.as_deref().into();
    vec![filter.event_type.as_deref().into(), topic.into(), since.into(), until.into(), event_id]
}

/// The states whose incidents a replay of many moves.
pub(crate) fn replayable_states() -> Vec<IncidentState> {
    IncidentState::ALL.into_iter().filter(|state| state.after(IncidentEvent::Replay).is_ok()).collect()
}
