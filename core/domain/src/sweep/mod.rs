//! The sweeper: finds dispatches that are due, whatever left them behind, and sends them.
//!
//! It looks at the ledger and the clock and at nothing else, so running it twice, at once or after a crash anywhere, does no
//! harm. A run owns topics and not rows: it holds the [lane](crate::lane) of a topic in a shard, reads what is due there,
//! sends it, and settles each row only if the row is still as it was read. Whoever touched a row meanwhile (a consumer that
//! delivered it, an operator, the core) wins. What is not settled stays due.
//!
//! Every topic is swept by itself, all at once, so one that hangs or refuses everything delays no other.

mod budget;
mod due;
mod settlement;
mod topic;

use serde::Deserialize;

use self::topic::TopicSweep;
use crate::join::join_all;
use crate::ledger::{Ledger, outcome};
use crate::ports::{Clock, Outcome, Queues, Sql, SqlError, Statement};

pub use self::budget::Budget;
pub use self::due::{FIND_TOPICS, READ_DUE};
pub use self::settlement::{ABANDON, MARK_ARCHIVED, MARK_FAILED, MARK_SENT};

/// What the sweeper needs of the world.
pub struct Sweeper<'a, S, Q, C> {
    /// Where dispatches wait.
    pub ledger: &'a Ledger<S>,
    /// Where they are sent.
    pub queues: &'a Q,
    /// The time.
    pub clock: &'a C,
    /// How long after a send a dispatch is looked at again, in milliseconds.
    pub in_transit_deadline_ms: i64,
}

/// What one run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Dispatches that their queue took.
    pub enqueued: usize,
    /// Dispatches that their queue did not take; they are tried again later.
    pub failed: usize,
    /// Dispatches that were given up; each has an incident.
    pub abandoned: usize,
    /// Dead letters that never reached the archiver and got their incident here.
    pub archived: usize,
    /// Errors of the ledger; what they concern stays due.
    pub errors: Vec<SqlError>,
}

impl Swept {
    fn add(&mut self, other: Self) {
        self.enqueued += other.enqueued;
        self.failed += other.failed;
        self.abandoned += other.abandoned;
        self.archived += other.archived;
        self.errors.extend(other.errors);
    }
}

#[derive(Deserialize)]
struct TopicRow {
    topic: String,
}

impl<S: Sql, Q: Queues, C: Clock> Sweeper<'_, S, Q, C> {
    /// Sends what is due in every topic of every shard, until nothing is left or the budget is used up. `token` is random
    /// and unique to the run.
    pub async fn sweep(&self, token: &str, budget: Budget) -> Swept {
        let shards = self.ledger.shards().map(|(_, shard)| self.sweep_shard(shard, token, &budget));
        sum(join_all(shards).await)
    }

    async fn sweep_shard(&self, shard: &S, token: &str, budget: &Budget) -> Swept {
        let mut topics = match self.find_topics(shard, budget).await {
            Ok(topics) => topics,
            Err(error) => return Swept { errors: vec![error], ..Swept::default() },
        };
        // Each run begins at another topic, so that every topic gets its turn when there are more than the budget is for.
        let start = token.bytes().map(usize::from).sum::<usize>().checked_rem(topics.len());
        topics.rotate_left(start.unwrap_or_default());
        let topics =
            topics.into_iter().map(|row| TopicSweep::new(self, shard, row.topic, token, budget).run());
        sum(join_all(topics).await)
    }

    async fn find_topics(&self, shard: &S, budget: &Budget) -> Result<Vec<TopicRow>, SqlError> {
        let now = self.clock.now();
        if budget.is_over(now) || !budget.spend(1) {
            return Ok(Vec::new());
        }
        let find = vec![Statement::new(FIND_TOPICS, vec![now.into()])];
        outcome(&batch(shard, find, budget).await?, 0)?.decode()
    }
}

/// Runs a batch that has been paid for, and once more if the database did not answer and the budget allows it.
async fn batch<S: Sql>(
    shard: &S,
    statements: Vec<Statement>,
    budget: &Budget,
) -> Result<Vec<Outcome>, SqlError> {
    match shard.batch(statements.clone()).await {
        Err(SqlError::Unavailable(_)) if budget.spend(1) => shard.batch(statements).await,
        answer => answer,
    }
}

fn sum(parts: Vec<Swept>) -> Swept {
    let mut all = Swept::default();
    parts.into_iter().for_each(|part| all.add(part));
    all
}
