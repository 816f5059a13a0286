//! The gateway's ports without Cloudflare: SQLite, memory and a clock that stands still.
//!
//! Tests, the simulation and local tools run on these. They refuse what D1, Queues and R2 refuse, so that nothing passes here
//! and fails there; `tests/conformance` runs the same cases on both. Every type is a handle: a clone means the same database,
//! queue or clock, so a test can keep one and hand another to the code that it watches.

mod blobs;
mod clock;
mod faults;
mod migrations;
mod queues;
mod rows;
mod run;
mod sinks;
mod sqlite;

pub use blobs::MemoryBlobs;
pub use clock::ManualClock;
pub use faults::{Fault, Flaky};
pub use migrations::MIGRATIONS;
pub use queues::MemoryQueues;
pub use run::{block_on, yield_now};
pub use sinks::MemorySinks;
pub use sqlite::SqliteShard;
