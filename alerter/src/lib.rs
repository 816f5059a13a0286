//! The alerter Worker: every minute it tells operators of what has failed for good and of what is stuck.
//!
//! It is a Worker of its own because it must tell of a sweeper that has stopped, and because no other one needs the addresses of
//! sinks, which are secrets.

use serde_json::json;
use swarm_cloudflare::clock::random_token;
use swarm_cloudflare::log::Log;
use swarm_cloudflare::{Bindings, HttpSinks, Misconfigured, SystemClock, cron};
use swarm_domain::alert::{Ages, Alerted, Alerter, Sink, parse_sinks};
use swarm_domain::limits::{ALERT_OPEN_HOURS_DEFAULT, ALERT_OUTBOX_MINUTES_DEFAULT, ALERT_SECONDS};
use swarm_domain::ports::Clock;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
// Linked for its start function, which lets the next request find a fresh module after a panic; worker-build's shim needs it.
use worker as _;

const LOG: Log = Log::new("swarm-alerter");

/// The cron handler.
#[wasm_bindgen]
pub async fn scheduled(event: JsValue, env: JsValue, _context: JsValue) -> Result<JsValue, JsValue> {
    cron::run(&event, env, &LOG, async |_, bindings| tell(bindings).await).await
}

/// Tells the sinks of `ALERT_SINKS`, of which there may be none.
async fn tell(bindings: &Bindings) -> Result<(), Misconfigured> {
    let hours = bindings.number_var("ALERT_OPEN_HOURS", ALERT_OPEN_HOURS_DEFAULT)?;
    let minutes = bindings.number_var("ALERT_OUTBOX_MINUTES", ALERT_OUTBOX_MINUTES_DEFAULT)?;
    let sinks = sinks(bindings)?;
    let alerter = Alerter {
        ledger: &bindings.ledger()?,
        sinks: &HttpSinks::new(&sinks),
        configured: &sinks,
        clock: &SystemClock,
        ages: Ages { open_ms: hours.saturating_mul(3_600_000), outbox_ms: minutes.saturating_mul(60_000) },
    };
    let deadline = SystemClock.now().plus_ms(ALERT_SECONDS * 1_000);
    report(&alerter.run(&random_token(), deadline).await);
    Ok(())
}

fn sinks(bindings: &Bindings) -> Result<Vec<Sink>, Misconfigured> {
    let Some(json) = bindings.optional_json_var("ALERT_SINKS")? else { return Ok(Vec::new()) };
    let configs = parse_sinks(&json).map_err(|error| Misconfigured(format!("ALERT_SINKS: {error}")))?;
    Ok(configs.iter().map(|config| config.resolve(|secret| bindings.var(secret))).collect())
}

/// Quiet minutes leave no line; whatever is told to sinks stands in the log as well.
fn report(alerted: &Alerted) {
    for error in &alerted.errors {
        LOG.error("a part of the ledger could not be watched", json!({ "error": error.to_string() }));
    }
    for line in &alerted.raised {
        LOG.error("alert", json!({ "alert": line }));
    }
    for (sink, reason) in &alerted.refused {
        LOG.error("a sink did not take an alert", json!({ "sink": sink, "error": reason }));
    }
    if alerted.sent > 0 {
        LOG.info("alerts sent", json!({ "sent": alerted.sent, "incidents": alerted.incidents }));
    }
}
