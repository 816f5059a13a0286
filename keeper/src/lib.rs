//! The keeper Worker: it watches over what the others leave behind. Every minute it tells operators of failures, and
//! every night it moves old events to the archive. Each cron expression of its config is one duty, with a module of its
//! own around a function of `swarm-domain`.
//!
//! It is a Worker of its own because it must tell of a sweeper that has stopped, and because no other may delete.

mod alerts;
mod retention;

use serde_json::json;
use swarm_cloudflare::log::Log;
use swarm_cloudflare::{Bindings, Misconfigured, inbox, js};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
// Linked for its start function, which lets the next request find a fresh module after a panic; worker-build's shim needs
// it.
use worker as _;

const LOG: Log = Log::new("swarm-keeper");

/// The cron expression of alerts; every other one is retention's, which may run as often as a deployment needs.
const EVERY_MINUTE: &str = "* * * * *";

/// The cron handler.
#[wasm_bindgen]
pub async fn scheduled(event: JsValue, env: JsValue, _context: JsValue) -> Result<JsValue, JsValue> {
    if !inbox::is_scheduled_event(&event) {
        return Err(js::error("only the runtime may call scheduled()"));
    }
    let cron = js::text(&event, "cron").unwrap_or_default();
    let bindings = Bindings::new(env);
    let done =
        if cron == EVERY_MINUTE { alerts::run(&bindings).await } else { retention::run(&bindings).await };
    if let Err(Misconfigured(problem)) = done {
        LOG.error("a cron could not run", json!({ "cron": cron, "error": problem }));
    }
    Ok(JsValue::UNDEFINED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_config_has_both_duties() {
        let config = include_str!("../../wrangler/keeper.jsonc");
        let crons = config.split_once("\"crons\":").unwrap().1.split_once(']').unwrap().0;
        let crons: Vec<&str> = crons.split('"').skip(1).step_by(2).collect();
        assert_eq!(crons.first(), Some(&EVERY_MINUTE));
        assert!(crons.len() > 1 && crons.iter().filter(|cron| **cron == EVERY_MINUTE).count() == 1);
    }
}
