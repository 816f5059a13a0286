//! Alerts: telling operators, once, of what has failed for good, and again of what nobody has dealt with.
//!
//! A run owns the lane of alerts. It looks at every shard for incidents that are due to be told of, makes one alert per
//! topic and minute of them for each sink, and writes these to the first shard together with the list of the incidents;
//! only then are the incidents marked, and the list goes. Wherever a run dies, the next one either finds the list and
//! marks, or finds nothing written and begins anew, so no incident is left out and none is told of twice.
//!
//! Sending comes last and goes by sink, all sinks at once, so one that is down or slow holds up nothing but itself. What
//! a sink may see twice is the same alert under the same id, if its answer got lost.

mod collect;
mod deliver;
mod document;
mod groups;
mod overdue;
mod signature;
mod sink;

use crate::lane::{Lane, is_ours};
use crate::ledger::{Ledger, batch_with_retry, outcome};
use crate::limits::{
    ALERT_DEADLINE_MS, ALERT_OPEN_HOURS_DEFAULT, ALERT_OUTBOX_MINUTES_DEFAULT, ALERT_ROUNDS_MAX,
};
use crate::ports::{Clock, Sinks, Sql, SqlError};
use crate::time::Timestamp;

use self::collect::{Marks, read_marks};

pub use self::collect::{CLEAR_MARKS, DUE_INCIDENTS, INSERT_ALERTS, INSERT_MARKS, MARK_TOLD, READ_MARKS};
pub use self::deliver::{ALERT_FAILED, ALERT_SENT, DUE_ALERTS};
pub use self::overdue::OVERDUE;
pub use self::signature::Signer;
pub use self::sink::{InvalidSinks, Sink, SinkConfig, parse_sinks};

/// The lane that a run of alerting owns.
const LANE: &str = "alerts";
/// What the calls of a run that began just before its deadline may still take.
const LANE_MARGIN_MS: i64 = 4 * ALERT_DEADLINE_MS;

/// How old something gets before operators hear of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ages {
    /// An incident that is still open after it was told of, in milliseconds.
    pub open_ms: i64,
    /// Something overdue in the outbox, in milliseconds.
    pub outbox_ms: i64,
}

impl Default for Ages {
    fn default() -> Self {
        Self {
            open_ms: ALERT_OPEN_HOURS_DEFAULT * 3_600_000,
            outbox_ms: ALERT_OUTBOX_MINUTES_DEFAULT * 60_000,
        }
    }
}

/// What alerting needs of the world.
pub struct Alerter<'a, S, K, C> {
    /// Where incidents and alerts are.
    pub ledger: &'a Ledger<S>,
    /// Where operators read.
    pub sinks: &'a K,
    /// Which of them there are; without any, incidents count as told of once they are in [`Alerted::raised`].
    pub configured: &'a [Sink],
    /// The time.
    pub clock: &'a C,
    /// How patient it is.
    pub ages: Ages,
}

/// What one run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alerted {
    /// Whether another run was at it, so that this one left everything alone.
    pub busy: bool,
    /// Incidents that were told of.
    pub incidents: usize,
    /// What the alerts of this run say, in a line each: once, however many sinks there are.
    pub raised: Vec<String>,
    /// Alerts that their sinks took.
    pub sent: usize,
    /// Sinks that did not take an alert, and why.
    pub refused: Vec<(String, String)>,
    /// Errors of the ledger; what they concern stays due.
    pub errors: Vec<SqlError>,
}

impl<S: Sql, K: Sinks, C: Clock> Alerter<'_, S, K, C> {
    /// Tells of everything that is due. `token` is random and unique to the run.
    pub async fn run(&self, token: &str, deadline: Timestamp) -> Alerted {
        let mut alerted = Alerted::default();
        let lane = Lane::new(LANE, token);
        if let Err(error) = self.run_in(&lane, deadline, &mut alerted).await {
            alerted.errors.push(error);
        }
        if !alerted.busy
            && let Err(error) = batch_with_retry(self.first(), vec![lane.release()]).await
        {
            alerted.errors.push(error);
        }
        alerted
    }

    async fn run_in(&self, lane: &Lane, deadline: Timestamp, alerted: &mut Alerted) -> Result<(), SqlError> {
        let now = self.clock.now();
        let begin = vec![lane.take(now, deadline.plus_ms(LANE_MARGIN_MS)), read_marks()];
        let outcomes = batch_with_retry(self.first(), begin).await?;
        if !is_ours(outcome(&outcomes, 0)?) {
            alerted.busy = true;
            return Ok(());
        }
        // Shards whose last round could not be brought to its end; they wait until it is.
        let mut unmarked: Vec<Marks> = outcome(&outcomes, 1)?.decode()?;
        for round in 0..ALERT_ROUNDS_MAX {
            unmarked = self.mark(unmarked, alerted).await;
            if round > 0 && self.clock.now() >= deadline {
                break;
            }
            let looked = self.look(&unmarked, alerted).await;
            if round == 0 {
                self.raise_overdue(lane, &looked, alerted).await?;
            }
            let more = looked.iter().any(|look| look.more);
            match self.tell(lane, looked, deadline, alerted).await? {
                Some(marks) => unmarked.extend(marks),
                None => return Ok(()),
            }
            if !more {
                break;
            }
        }
        self.mark(unmarked, alerted).await;
        self.deliver(deadline, alerted).await
    }

    /// The shard that holds what belongs to no tenant.
    fn first(&self) -> &S {
        self.ledger.shard(0)
    }
}
