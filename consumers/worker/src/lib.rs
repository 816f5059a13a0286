//! The consumer Worker: a queue handler, and nothing else.
//!
//! One build serves every queue; the variable `CONSUMER` says which handler a deployment runs. The handler of the queue is
//! exported by hand, because the macro for it turns an error into a panic, and a panic ends everything in the isolate. No
//! Worker may bind this one: every export is an RPC method too, which is why the kit refuses batches that are not the
//! runtime's own.

mod audit_archive;
mod billing_invoices;
mod consumer;

// Linked for its start function, which lets the next request find a fresh module after a panic; worker-build's shim needs it.
use consumer::ShippedConsumer;
use swarm_cloudflare::log::Log;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use worker as _;

const LOG: Log = Log::new("swarm-consumers");

/// A batch from the queue. If it is rejected, the runtime delivers the whole batch again.
#[wasm_bindgen]
pub async fn queue(batch: JsValue, env: JsValue, _ctx: JsValue) -> Result<JsValue, JsValue> {
    swarm_consumer_kit::worker::serve(batch, env, ShippedConsumer::read, &LOG).await?;
    Ok(JsValue::UNDEFINED)
}
