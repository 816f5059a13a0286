//! The sweeper: finds dispatches that are due, whatever left them behind, and sends them.
//!
//! It looks at the ledger and the clock and at nothing else, so running it twice, at once or after a crash anywhere, does no
//! harm: what is claimed is left alone by others, and what is not settled becomes due again.

use futures_util::future::join_all;

use crate::claim::{Claimant, Claimed, claim_due};
use crate::ledger::Ledger;
use crate::limits::{QUEUE_BATCH_BYTES_MAX, QUEUE_BATCH_MESSAGES_MAX, SWEEP_CLAIM_MAX, SWEEP_ROUNDS_MAX};
use crate::ports::{Clock, Queues, Sql, SqlError};
use crate::settle::{Settlement, settle};
use crate::time::Timestamp;
use crate::topic::Topic;

/// Bytes that the platform adds to each message of a batch.
const MESSAGE_OVERHEAD_BYTES: usize = 100;

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
    /// Dispatches that their queue did not take.
    pub failed: usize,
    /// Errors of the ledger; what they concern stays due.
    pub errors: Vec<SqlError>,
}

impl<S: Sql, Q: Queues, C: Clock> Sweeper<'_, S, Q, C> {
    /// Sends what is due in every shard, round by round, until nothing is left or `deadline` has passed. `token` is random
    /// and unique to the run.
    pub async fn sweep(&self, token: &str, deadline: Timestamp) -> Swept {
        let shards =
            join_all(self.ledger.shards().map(|(_, shard)| self.sweep_shard(shard, token, deadline)));
        shards.await.into_iter().fold(Swept::default(), |mut all, one| {
            all.enqueued += one.enqueued;
            all.failed += one.failed;
            all.errors.extend(one.errors);
            all
        })
    }

    async fn sweep_shard(&self, shard: &S, token: &str, deadline: Timestamp) -> Swept {
        let mut swept = Swept::default();
        for number in 0..SWEEP_ROUNDS_MAX {
            let now = self.clock.now();
            if now >= deadline {
                break;
            }
            // A token of its own, or a round within the same millisecond would read the claims of the one before as well.
            let claimant = Claimant::new(format!("{token}-{number}"), now);
            match self.round(shard, &claimant, now, &mut swept).await {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    swept.errors.push(error);
                    break;
                }
            }
        }
        swept
    }

    async fn round(
        &self,
        shard: &S,
        claimant: &Claimant,
        now: Timestamp,
        swept: &mut Swept,
    ) -> Result<usize, SqlError> {
        let claims = claim_due(shard, claimant, now, SWEEP_CLAIM_MAX).await?;
        let count = claims.claimed.len() + claims.unreadable.len();
        swept.errors.extend(claims.unreadable);
        let batches = pack(claims.claimed);
        let sends = batches.into_iter().map(|batch| self.send(batch, &claimant.token));
        let settlements: Vec<_> = join_all(sends).await.into_iter().flatten().collect();
        let failed = settlements.iter().filter(|s| s.result.is_err()).count();
        swept.failed += failed;
        swept.enqueued += settlements.len() - failed;
        settle(self.ledger, settlements, self.clock.now(), self.in_transit_deadline_ms).await?;
        Ok(count)
    }

    /// Sends one batch; all of it succeeds or fails together.
    async fn send(&self, batch: Batch, token: &str) -> Vec<Settlement> {
        let result = self.queues.send_batch(&batch.topic, batch.texts).await;
        let at = self.clock.now();
        batch.claimed.iter().map(|claimed| Settlement::new(claimed, token, result.clone(), at)).collect()
    }
}

/// Messages of one topic that fit into one `sendBatch`.
struct Batch {
    topic: Topic,
    claimed: Vec<Claimed>,
    texts: Vec<String>,
    bytes: usize,
}

/// Packs dispatches by topic, in the order they came, within the limits of `sendBatch`.
fn pack(claimed: Vec<Claimed>) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    for claimed in claimed {
        // A message that cannot be written is left to its claim's end; the shape of ours always can.
        let Ok(text) = claimed.message.encode() else { continue };
        let bytes = text.len() + MESSAGE_OVERHEAD_BYTES;
        let topic = claimed.message.topic.clone();
        let open = batches.iter_mut().rev().find(|batch| batch.topic == topic);
        match open {
            Some(batch) if batch.has_room_for(bytes) => batch.push(claimed, text, bytes),
            _ => batches.push(Batch { topic, claimed: vec![claimed], texts: vec![text], bytes }),
        }
    }
    batches
}

impl Batch {
    fn has_room_for(&self, bytes: usize) -> bool {
        self.texts.len() < QUEUE_BATCH_MESSAGES_MAX && self.bytes + bytes <= QUEUE_BATCH_BYTES_MAX
    }

    fn push(&mut self, claimed: Claimed, text: String, bytes: usize) {
        self.claimed.push(claimed);
        self.texts.push(text);
        self.bytes += bytes;
    }
}
