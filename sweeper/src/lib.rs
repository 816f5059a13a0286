//! The sweeper Worker: one cron handler around [`swarm_domain::sweep`].

// Linked for its start function, which lets the next request find a fresh module after a panic; worker-build's shim needs it.
use serde_json::json;
use swarm_cloudflare::clock::random_token;
use swarm_cloudflare::log::Log;
use swarm_cloudflare::{Bindings, Misconfigured, SystemClock, inbox, js};
use swarm_domain::ports::Clock;
use swarm_domain::sweep::{Sweeper, Swept};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use worker as _;

const LOG: Log = Log::new("swarm-sweeper");

/// How long a run may take: less than the two minutes until the next one. `SWEEP_SECONDS` changes it.
const SWEEP_SECONDS_DEFAULT: i64 = 90;

/// The cron handler.
#[wasm_bindgen]
pub async fn scheduled(event: JsValue, env: JsValue, _context: JsValue) -> Result<JsValue, JsValue> {
    if !inbox::is_scheduled_event(&event) {
        return Err(js::error("only the runtime may call scheduled()"));
    }
    match sweep(&Bindings::new(env)).await {
        Ok(swept) => report(&swept),
        Err(Misconfigured(problem)) => LOG.error("cannot sweep", json!({ "error": problem })),
    }
    Ok(JsValue::UNDEFINED)
}

async fn sweep(bindings: &Bindings) -> Result<Swept, Misconfigured> {
    let seconds = bindings.number_var("SWEEP_SECONDS", SWEEP_SECONDS_DEFAULT)?;
    let sweeper = Sweeper {
        ledger: &bindings.ledger()?,
        queues: &bindings.queues(),
        clock: &SystemClock,
        in_transit_deadline_ms: bindings.in_transit_deadline_ms()?,
    };
    let deadline = SystemClock.now().plus_ms(seconds.saturating_mul(1000));
    Ok(sweeper.sweep(&random_token(), deadline).await)
}

fn report(swept: &Swept) {
    for error in &swept.errors {
        LOG.error("a shard could not be swept", json!({ "error": error.to_string() }));
    }
    let counts = json!({ "enqueued": swept.enqueued, "failed": swept.failed });
    if swept.failed > 0 {
        LOG.error("swept; some topics did not take their events", counts);
    } else {
        LOG.info("swept", counts);
    }
}
