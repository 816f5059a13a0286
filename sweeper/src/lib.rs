//! The sweeper Worker: what the gateway does by the clock. Each cron expression of its config is one duty, with a module of
//! its own around a function of `swarm-domain`.

mod replays;
mod sweep;

use swarm_cloudflare::log::Log;
use swarm_cloudflare::{Bindings, Misconfigured, cron};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
// Linked for its start function, which lets the next request find a fresh module after a panic; worker-build's shim needs it.
use worker as _;

const LOG: Log = Log::new("swarm-sweeper");

/// The cron expressions of `wrangler/sweeper.jsonc`.
const EVERY_TWO_MINUTES: &str = "*/2 * * * *";
const EVERY_MINUTE: &str = "* * * * *";

/// The cron handler.
#[wasm_bindgen]
pub async fn scheduled(event: JsValue, env: JsValue, _context: JsValue) -> Result<JsValue, JsValue> {
    cron::run(&event, env, &LOG, run).await
}

async fn run(cron: &str, bindings: &Bindings) -> Result<(), Misconfigured> {
    match cron {
        EVERY_TWO_MINUTES => sweep::run(bindings).await,
        EVERY_MINUTE => replays::run(bindings).await,
        _ => Err(Misconfigured(format!("no duty belongs to the cron expression '{cron}'"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cron_of_the_config_has_a_duty() {
        let config = include_str!("../../wrangler/sweeper.jsonc");
        let crons = config.split_once("\"crons\":").unwrap().1.split_once(']').unwrap().0;
        let crons: Vec<&str> = crons.split('"').skip(1).step_by(2).collect();
        assert_eq!(crons, [EVERY_TWO_MINUTES, EVERY_MINUTE]);
    }
}
