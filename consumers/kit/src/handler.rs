//! The part that a consumer writes itself.
#![allow(async_fn_in_trait)]

use swarm_domain::event::Envelope;
use swarm_domain::ports::Statement;
use swarm_domain::topic::Topic;

use crate::failure::Failure;

/// What a consumer does with its messages.
///
/// A message may come again: after a crash, and after outcomes that could not be recorded. Statements that a handler
/// returns take effect exactly once all the same, because they commit together with `delivered`; whatever else it does must
/// be harmless when it is done twice.
pub trait Handler {
    /// Handles one message.
    async fn handle(&self, delivery: &Delivery) -> Result<Handled, Failure>;

    /// Handles messages together and answers one result for each, in their order. A result that is left out counts as a
    /// transient failure. Large payloads divide a batch of the queue into several of these.
    async fn handle_batch(&self, batch: &[Delivery]) -> Vec<Result<Handled, Failure>> {
        let mut results = Vec::with_capacity(batch.len());
        for delivery in batch {
            results.push(self.handle(delivery).await);
        }
        results
    }
}

/// A message in the hands of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The event, without its payload.
    pub envelope: Envelope,
    /// The payload's text, to the byte, wherever it was kept.
    pub payload: String,
    /// The topic that it came through.
    pub topic: Topic,
    /// The incident or delivery that this message repeats on an operator's wish.
    pub replay_of: Option<String>,
    /// How often the queue has delivered it, this time included.
    pub attempts: u32,
}

/// A message that was handled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handled {
    /// Statements that commit together with `delivered`, in the database of the tenant's ledger shard.
    pub effects: Vec<Statement>,
}

impl Handled {
    /// Nothing is left to do.
    pub fn done() -> Self {
        Self::default()
    }

    /// These statements are left to run. If one is refused, none of them takes effect and the message counts as failed.
    pub fn with_effects(effects: Vec<Statement>) -> Self {
        Self { effects }
    }
}
