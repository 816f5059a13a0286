//! The domain's ports as one run of a Worker sees them: the native ones, behind faults and mutants.

mod blobs;
mod clock;
mod queues;
mod sql;

pub use blobs::SimBlobs;
pub use clock::SimClock;
pub use queues::SimQueues;
pub use sql::{SimShard, ledger};
