//! Counts wait in the isolate and are written together. What dies with the isolate was counted in vain, which a number for
//! people to look at can bear.

use std::cell::RefCell;

use serde_json::json;
use swarm_cloudflare::clock::random_token;
use swarm_cloudflare::{D1Shard, SystemClock, runtime};
use swarm_domain::ledger::Ledger;
use swarm_domain::limits::REJECTED_COUNTS_WAIT_MS;
use swarm_domain::ports::{Clock, SqlError};
use swarm_domain::rejected::{RejectedRequest, Tally};
use swarm_domain::time::Timestamp;
use worker_sys::Context;

use crate::LOG;

/// How long past its time a write counts as lost with the request that should have made it.
const OVERDUE_MS: i64 = 5_000;

#[derive(Default)]
struct Counting {
    tally: Tally,
    /// The name under which this isolate counts.
    counter: String,
    /// When some request will write.
    write_at: Option<Timestamp>,
}

thread_local! {
    static COUNTING: RefCell<Counting> = RefCell::default();
}

/// Counts a request. The first one of a while also waits, and writes what has been counted by then.
pub fn count(context: &Context, ledger: Ledger<D1Shard>, request: &RejectedRequest, now: Timestamp) {
    let unattended = COUNTING.with_borrow_mut(|counting| {
        counting.tally.add(&request.provider, &request.reason, now);
        let unattended = counting.write_at.is_none_or(|at| now > at.plus_ms(OVERDUE_MS));
        if unattended {
            counting.write_at = Some(now.plus_ms(REJECTED_COUNTS_WAIT_MS as i64));
        }
        unattended
    });
    if unattended {
        runtime::after_answer(context, async move {
            runtime::sleep_ms(REJECTED_COUNTS_WAIT_MS).await;
            if let Err(error) = write(&ledger).await {
                LOG.error("rejected requests could not be counted", json!({ "error": error.to_string() }));
            }
        });
    }
}

async fn write(ledger: &Ledger<D1Shard>) -> Result<(), SqlError> {
    let (counter, rows) = COUNTING.with_borrow_mut(|counting| {
        counting.write_at = None;
        if counting.counter.is_empty() {
            counting.counter = random_token();
        }
        (counting.counter.clone(), counting.tally.take(SystemClock.now()))
    });
    match rows? {
        Some(rows) => Tally::record(ledger, &counter, rows).await,
        None => Ok(()),
    }
}
