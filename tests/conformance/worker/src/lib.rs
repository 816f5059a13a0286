//! The conformance suite as a Worker: each request runs every case on the bindings and answers `[{ name, ok, detail }]`.

use swarm_cloudflare::{Bindings, GroupedShard, Misconfigured, js};
use swarm_conformance::{CaseResult, run_blobs, run_queues, run_sql};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
// Linked for its start function, with which a Worker recovers from a panic; the generated JavaScript calls it.
use worker as _;

#[wasm_bindgen]
extern "C" {
    /// The runtime's own class.
    type Response;
    #[wasm_bindgen(constructor)]
    fn new(body: &str) -> Response;
}

/// Runs everything, whatever the request says.
#[wasm_bindgen]
pub async fn fetch(_request: JsValue, env: JsValue, _context: JsValue) -> Result<JsValue, JsValue> {
    let results = run(&Bindings::new(env)).await.map_err(|e| js::error(&e.to_string()))?;
    let json = serde_json::to_string(&results).map_err(|e| js::error(&e.to_string()))?;
    Ok(Response::new(&json).into())
}

/// Takes what the cases have sent. A queue without a consumer would let everything pass locally, whatever its size.
#[wasm_bindgen]
pub async fn queue(_batch: JsValue, _env: JsValue, _context: JsValue) -> Result<JsValue, JsValue> {
    Ok(JsValue::UNDEFINED)
}

async fn run(bindings: &Bindings) -> Result<Vec<CaseResult>, Misconfigured> {
    let mut results = Vec::new();
    for (_, shard) in bindings.ledger()?.shards() {
        results.extend(run_sql(shard).await);
    }
    for (_, shard) in bindings.ledger_of(GroupedShard::new)?.shards() {
        results.extend(run_sql(shard).await);
    }
    results.extend(run_queues(&bindings.queues()).await);
    results.extend(run_blobs(&bindings.blobs()?).await);
    Ok(results)
}
