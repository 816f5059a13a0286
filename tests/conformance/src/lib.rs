//! What the gateway relies on in its ports, as named cases.
//!
//! The same cases run natively on SQLite and memory, and inside workerd on D1, Queues and R2, so that the two worlds cannot
//! drift apart quietly: whatever the simulation takes for granted is a case here. A case says in its name what it holds, and
//! in its result what it saw instead.

mod blobs;
mod case;
mod ledger;
mod limits;
mod queues;
mod sql;
mod text;

pub use blobs::run_blobs;
pub use case::CaseResult;
pub use queues::run_queues;

use swarm_domain::ports::Sql;

/// Runs every case about a ledger shard. The migrations must have been applied; scratch tables are made here.
pub async fn run_sql<S: Sql>(shard: &S) -> Vec<CaseResult> {
    let mut results = sql::run(shard).await;
    results.extend(text::run(shard).await);
    results.extend(limits::run(shard).await);
    results.extend(ledger::run(shard).await);
    results
}
