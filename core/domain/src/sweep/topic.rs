//! Sweeping one topic of one shard: a loop of rounds, each with one round trip to the database.
//!
//! The batch of a round settles what the round before has sent, keeps the lane, and reads the next page; a last one settles
//! and lets the lane go. So a page of a hundred dispatches costs one round trip and, but for the lane, only its own rows.

use super::due::{Cursor, Due, Need, Page, read_page};
use super::settlement::{Fate, settle};
use super::{Budget, Sweeper, Swept, batch};
use crate::join::join_all;
use crate::lane::{Lane, is_ours};
use crate::ledger::outcome;
use crate::limits::SWEEP_LANE_MS;
use crate::packing::{Batch, pack_texts};
use crate::ports::{Clock, Queues, SendError, Sql, SqlError, Statement};
use crate::settle::short_error;
use crate::topic::Topic;

/// Calls that are kept for the end: the last settlement, and its repetition if the answer gets lost.
const CALLS_TO_CLOSE: usize = 2;

/// One run's work on one topic of one shard.
pub(super) struct TopicSweep<'a, S, Q, C> {
    sweeper: &'a Sweeper<'a, S, Q, C>,
    shard: &'a S,
    topic: String,
    source_queue: String,
    lane: Lane,
    budget: &'a Budget,
    /// Whether the lane is ours as far as this run knows.
    holds: bool,
    after: Cursor,
    swept: Swept,
}

impl<'a, S: Sql, Q: Queues, C: Clock> TopicSweep<'a, S, Q, C> {
    pub(super) fn new(
        sweeper: &'a Sweeper<'a, S, Q, C>,
        shard: &'a S,
        topic: String,
        token: &str,
        budget: &'a Budget,
    ) -> Self {
        let lane = Lane::new(format!("sweep:{topic}"), token);
        let queue = Topic::try_from(topic.clone()).map(|topic| topic.queue());
        let source_queue = queue.unwrap_or_else(|_| topic.clone());
        let (after, swept) = (Cursor::default(), Swept::default());
        Self { sweeper, shard, topic, source_queue, lane, budget, holds: false, after, swept }
    }

    /// Goes on until nothing is due, the budget is used up, the lane is another's, or the topic takes nothing. An error of the
    /// database leaves what was sent unsettled and so due, and the lane to its end.
    pub(super) async fn run(mut self) -> Swept {
        if !self.budget.spend(CALLS_TO_CLOSE) {
            return self.swept;
        }
        let left = self.rounds().await;
        self.budget.give_back(CALLS_TO_CLOSE);
        let closed = match left {
            Ok(settled) if self.holds => self.close(&settled).await,
            left => left.map(|_| ()),
        };
        self.swept.errors.extend(closed.err());
        self.swept
    }

    /// All rounds. Returns what the last one has left to settle.
    async fn rounds(&mut self) -> Result<Vec<(Due, Fate)>, SqlError> {
        let mut settled = Vec::new();
        while !self.budget.is_over(self.sweeper.clock.now()) && self.budget.spend(1) {
            let Some(page) = self.turn(&settled).await? else { return Ok(Vec::new()) };
            let goes_on = page.more && page.end.is_some();
            self.after = page.end.unwrap_or_default();
            self.swept.errors.extend(page.errors);
            let served = self.serve(page.rows).await;
            settled = served.settled;
            self.count(&settled);
            if !goes_on || served.is_short || is_refused(&settled) {
                break;
            }
        }
        Ok(settled)
    }

    /// Settles the round before and reads the next page; none if another run has the lane.
    async fn turn(&mut self, settled: &[(Due, Fate)]) -> Result<Option<Page>, SqlError> {
        let now = self.sweeper.clock.now();
        let mut statements = self.settle(settled)?;
        let lane = statements.len();
        let until = now.plus_ms(SWEEP_LANE_MS);
        statements.push(if self.holds { self.lane.renew(until) } else { self.lane.take(now, until) });
        statements.push(read_page(&self.topic, &self.lane, now, &self.after));
        let outcomes = batch(self.shard, statements, self.budget).await?;
        self.holds = is_ours(outcome(&outcomes, lane)?);
        if self.holds { Page::read(outcome(&outcomes, lane + 1)?).map(Some) } else { Ok(None) }
    }

    /// Settles what is left and lets others have the lane. The budget has kept the call.
    async fn close(&self, settled: &[(Due, Fate)]) -> Result<(), SqlError> {
        let mut statements = self.settle(settled)?;
        statements.push(self.lane.release());
        if self.budget.spend(1) {
            batch(self.shard, statements, self.budget).await?;
        }
        Ok(())
    }

    fn settle(&self, settled: &[(Due, Fate)]) -> Result<Vec<Statement>, SqlError> {
        let (now, deadline) = (self.sweeper.clock.now(), self.sweeper.in_transit_deadline_ms);
        settle(&self.topic, &self.source_queue, settled, now, deadline)
    }

    /// Gives each dispatch of a page what it needs, as far as the budget goes.
    async fn serve(&self, rows: Vec<(Due, Need)>) -> Served {
        let (mut messages, mut served) = (Vec::new(), Served::default());
        for (due, need) in rows {
            match need {
                Need::Send(topic, text) => messages.push((topic, due, text)),
                Need::Abandon(error) => {
                    served.settled.push((due, Fate::Abandoned { error: short_error(&error), sends: 0 }));
                }
                Need::Archive => served.settled.push((due, Fate::Archived)),
            }
        }
        let sends = pack_texts(messages).into_iter().map(|batch| self.send(batch));
        for sent in join_all(sends).await {
            served.settled.extend(sent.settled);
            served.is_short |= sent.is_short;
        }
        served
    }

    /// Sends one batch, all of which succeeds or fails together. If the queue rejects it, one message may be to blame, so its
    /// halves are tried alone, and theirs.
    async fn send(&self, batch: Batch<Due>) -> Served {
        let mut served = Served::default();
        let mut waiting = vec![(batch.claimed, batch.texts)];
        while let Some((mut dues, mut texts)) = waiting.pop() {
            if !self.budget.spend(1) {
                served.is_short = true;
                break;
            }
            let half = dues.len() / 2;
            match self.sweeper.queues.send_batch(&batch.topic, texts.clone()).await {
                Ok(()) => served.settled.extend(dues.into_iter().map(|due| (due, Fate::Sent))),
                Err(SendError::Rejected(_)) if half > 0 => {
                    waiting.push((dues.split_off(half), texts.split_off(half)));
                    waiting.push((dues, texts));
                }
                Err(error) => served.settled.extend(dues.into_iter().map(|due| unsent(due, &error))),
            }
        }
        served
    }

    fn count(&mut self, settled: &[(Due, Fate)]) {
        for (_, fate) in settled {
            let count = match fate {
                Fate::Sent => &mut self.swept.enqueued,
                Fate::Failed(_) => &mut self.swept.failed,
                Fate::Abandoned { .. } => &mut self.swept.abandoned,
                Fate::Archived => &mut self.swept.archived,
            };
            *count += 1;
        }
    }
}

/// What became of dispatches, of all or of those for which the budget was long enough.
#[derive(Default)]
struct Served {
    settled: Vec<(Due, Fate)>,
    is_short: bool,
}

fn unsent(due: Due, error: &SendError) -> (Due, Fate) {
    let text = error.to_string();
    let fate = if error.is_permanent() {
        Fate::Abandoned { error: short_error(&text), sends: 1 }
    } else if due.attempts + 1 >= due.max_attempts {
        let error = short_error(&format!("Outbox sweeper retries exhausted: {text}"));
        Fate::Abandoned { error, sends: 1 }
    } else {
        Fate::Failed(short_error(&text))
    };
    (due, fate)
}

/// Whether a round was sent and nothing of it was taken. Then the topic is left alone until the next run: it would use up the
/// time and the calls of the others.
fn is_refused(settled: &[(Due, Fate)]) -> bool {
    let is_unsent = |fate: &Fate| matches!(fate, Fate::Failed(_) | Fate::Abandoned { sends: 1.., .. });
    let is_taken = |fate: &Fate| matches!(fate, Fate::Sent);
    settled.iter().any(|(_, fate)| is_unsent(fate)) && !settled.iter().any(|(_, fate)| is_taken(fate))
}
