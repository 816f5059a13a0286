//! The ordinary way of a replayed dispatch: into its queue, and the outcome into the ledger.

use crate::claim::{Claimant, Claims};
use crate::join::join_all;
use crate::ledger::Ledger;
use crate::packing::{Batch, pack};
use crate::ports::{Clock, Queues, Sql, SqlError};
use crate::settle::{Settlement, settle};

/// Replays incidents and events.
#[derive(Debug)]
pub struct Replayer<'a, S, Q, C> {
    /// Where they are.
    pub ledger: &'a Ledger<S>,
    /// Where they are sent.
    pub queues: &'a Q,
    /// The time.
    pub clock: &'a C,
    /// How long after a send a dispatch is looked at again, in milliseconds.
    pub in_transit_deadline_ms: i64,
}

impl<S: Sql, Q: Queues, C: Clock> Replayer<'_, S, Q, C> {
    /// Sends what a run has claimed: one call per batch of messages and one per shard that they come from. What a queue does
    /// not take, and what cannot be recorded, is the sweeper's from here on. Answers the first error of the ledger.
    pub(super) async fn send(&self, claims: Claims, claimant: &Claimant) -> Result<(), SqlError> {
        if claims.claimed.is_empty() {
            return Ok(());
        }
        let sends = pack(claims.claimed).into_iter().map(|batch| self.send_batch(batch, claimant));
        let settlements: Vec<_> = join_all(sends).await.into_iter().flatten().collect();
        settle(self.ledger, settlements, self.clock.now(), self.in_transit_deadline_ms).await
    }

    async fn send_batch(&self, batch: Batch, claimant: &Claimant) -> Vec<Settlement> {
        let result = self.queues.send_batch(&batch.topic, batch.texts).await;
        let at = self.clock.now();
        let settlement = |claimed| Settlement::new(claimed, &claimant.token, result.clone(), at);
        batch.claimed.iter().map(settlement).collect()
    }
}
