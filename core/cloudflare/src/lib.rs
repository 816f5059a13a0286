//! The domain's ports on Cloudflare, and the few things that every Worker of the gateway does alike: reading bindings,
//! waiting after the answer, and logging.
//!
//! Bindings are used through `worker-sys`, whose calls return every JavaScript exception; the wrappers above it turn some
//! of them into panics, and a panic ends all requests of the isolate.

pub mod bindings;
pub mod blobs;
pub mod body;
pub mod caller;
pub mod clock;
pub mod cron;
pub mod d1;
pub mod download;
pub mod group_commit;
pub mod inbox;
pub mod js;
pub mod log;
pub mod queues;
pub mod runtime;
pub mod sinks;

pub use bindings::{Bindings, Misconfigured};
pub use blobs::R2Blobs;
pub use clock::SystemClock;
pub use d1::D1Shard;
pub use group_commit::GroupedShard;
pub use queues::TopicQueues;
pub use sinks::HttpSinks;
