//! The domain's ports as one run of a Worker sees them: the native ones, behind faults and mutants.

mod blobs;
mod clock;
mod queues;
mod sinks;
mod sql;

pub use blobs::SimBlobs;
pub use clock::SimClock;
pub use queues::SimQueues;
pub use sinks::SimSinks;
pub use sql::{SimShard, ledger};
