//! The keeper Worker: every night it moves old events that are done to the archive, and clears away what nobody needs any
//! more.
//!
//! It is a Worker of its own because no other one may delete.

use serde_json::json;
use swarm_cloudflare::clock::random_token;
use swarm_cloudflare::log::Log;
use swarm_cloudflare::{Bindings, Misconfigured, SystemClock, cron};
use swarm_domain::limits::{REJECTED_DAYS_DEFAULT, RETENTION_EVENTS_DEFAULT, RETENTION_SECONDS_DEFAULT};
use swarm_domain::ports::Clock;
use swarm_domain::rejected::expire;
use swarm_domain::retention::{Periods, Retained, Retention};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
// Linked for its start function, which lets the next request find a fresh module after a panic; worker-build's shim needs it.
use worker as _;

const LOG: Log = Log::new("swarm-keeper");

/// The cron handler.
#[wasm_bindgen]
pub async fn scheduled(event: JsValue, env: JsValue, _context: JsValue) -> Result<JsValue, JsValue> {
    cron::run(&event, env, &LOG, async |_, bindings| {
        let kept = keep(bindings).await;
        forget_rejected(bindings).await.and(kept)
    })
    .await
}

/// Works for `RETENTION_SECONDS` on at most `RETENTION_EVENTS` events; `RETENTION` says how long they are kept.
async fn keep(bindings: &Bindings) -> Result<(), Misconfigured> {
    let seconds = bindings.number_var("RETENTION_SECONDS", RETENTION_SECONDS_DEFAULT)?;
    let events = bindings.number_var("RETENTION_EVENTS", RETENTION_EVENTS_DEFAULT)?;
    let periods = match bindings.optional_json_var("RETENTION")? {
        Some(json) => Periods::parse(&json).map_err(|error| Misconfigured(format!("RETENTION: {error}")))?,
        None => Periods::default(),
    };
    let retention = Retention {
        ledger: &bindings.ledger()?,
        blobs: &bindings.blobs()?,
        clock: &SystemClock,
        periods: &periods,
    };
    let deadline = SystemClock.now().plus_ms(seconds.saturating_mul(1000));
    report(&retention.run(&random_token(), deadline, events.unsigned_abs()).await);
    Ok(())
}

/// Removes requests that did not pass, when they are older than `REJECTED_DAYS`.
async fn forget_rejected(bindings: &Bindings) -> Result<(), Misconfigured> {
    let days = bindings.number_var("REJECTED_DAYS", REJECTED_DAYS_DEFAULT)?;
    let (ledger, rejected) = (bindings.ledger()?, bindings.bucket("REJECTED")?);
    match expire(&ledger, &rejected, SystemClock.now(), days).await {
        Ok(expired) => LOG.info(
            "forgot rejected requests",
            json!({ "requests": expired.requests, "counts": expired.counts }),
        ),
        Err(error) => {
            LOG.error("rejected requests could not be forgotten", json!({ "error": error.to_string() }))
        }
    }
    Ok(())
}

fn report(retained: &Retained) {
    for error in &retained.errors {
        LOG.error("something could not be archived", json!({ "error": error.to_string() }));
    }
    if retained.busy {
        return LOG.info("another run of retention is at work", json!({}));
    }
    LOG.info(
        "archived and deleted",
        json!({
            "events": retained.events,
            "parts": retained.parts,
            "bytes": retained.bytes,
            "kept": retained.kept,
            "payloads": retained.payloads,
            "alerts": retained.alerts,
            "replays": retained.replays,
            "finished": retained.finished,
        }),
    );
}
