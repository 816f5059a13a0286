//! Outcomes of sends wait here and are written together, long after the answers.
//!
//! One D1 call per event for its mark would cost a quarter of the throughput. Waiting saves more than calls: a consumer that
//! is faster than the wait has moved the dispatch to `delivered` by then, and the mark matches nothing and costs nothing.
//! Marks that die with the isolate only mean that the sweeper sends once more and the consumer drops it. What a queue did
//! not take is written at once, so that operators see it.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::json;
use swarm_cloudflare::{SystemClock, runtime};
use swarm_domain::limits::MARKS_WAITING_MAX;
use swarm_domain::ports::Clock;
use swarm_domain::settle::{Settlement, settle};
use swarm_domain::time::Timestamp;
use worker_sys::Context;

use crate::LOG;
use crate::settings::Settings;

/// How long past its time a write counts as lost with the request that should have made it.
const OVERDUE_MS: i64 = 5_000;

#[derive(Default)]
struct Waiting {
    settlements: Vec<Settlement>,
    /// When some request will write them.
    write_at: Option<Timestamp>,
}

thread_local! {
    static WAITING: RefCell<Waiting> = RefCell::default();
}

/// Keeps settlements until their wait is over, until too many wait, or until one of them is a failure.
pub fn write_later(context: &Context, settings: &Rc<Settings>, settlements: Vec<Settlement>) {
    if settlements.is_empty() {
        return;
    }
    let now = SystemClock.now();
    let failed = settlements.iter().any(|settlement| settlement.result.is_err());
    let (urgent, unattended) = WAITING.with_borrow_mut(|waiting| {
        waiting.settlements.extend(settlements);
        let urgent = failed || waiting.settlements.len() >= MARKS_WAITING_MAX;
        let unattended = waiting.write_at.is_none_or(|at| now > at.plus_ms(OVERDUE_MS));
        if unattended && !urgent {
            waiting.write_at = Some(now.plus_ms(settings.marks_wait_ms as i64));
        }
        (urgent, unattended)
    });
    let settings = Rc::clone(settings);
    if urgent {
        runtime::after_answer(context, async move { write(&settings).await });
    } else if unattended {
        runtime::after_answer(context, async move {
            runtime::sleep_ms(settings.marks_wait_ms).await;
            WAITING.with_borrow_mut(|waiting| waiting.write_at = None);
            write(&settings).await;
        });
    }
}

async fn write(settings: &Settings) {
    let settlements = WAITING.with_borrow_mut(|waiting| std::mem::take(&mut waiting.settlements));
    let count = settlements.len();
    let deadline = settings.in_transit_deadline_ms;
    if let Err(error) = settle(&settings.ledger, settlements, SystemClock.now(), deadline).await {
        let fields = json!({ "count": count, "error": error.to_string() });
        LOG.error("outcomes of sends were not recorded; the sweeper will send again", fields);
    }
}
