//! What became of a message, and what its queue is told.

pub use swarm_domain::inbox::Disposition;
use swarm_domain::ledger::DispatchKey;

/// What became of a message in this batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Handled and recorded.
    Delivered,
    /// It was done already.
    AtRest,
    /// A copy of a message that stands earlier in the batch.
    Duplicate,
    /// Another run owns it.
    Held,
    /// In the dead-letter queue; why.
    DeadLettered(String),
    /// Not done; why.
    Failed(String),
}

/// The end of one message of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The dispatch, if the message could be read.
    pub key: Option<DispatchKey>,
    /// How often the queue has delivered it, this time included.
    pub attempts: u32,
    /// What became of it.
    pub end: End,
    /// What the queue is told.
    pub disposition: Disposition,
}
