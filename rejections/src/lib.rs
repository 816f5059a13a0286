//! The rejections Worker: adapters report to it what did not pass, it counts every one and keeps some.
//!
//! It is a Worker of its own because adapters are public: what reads hostile requests has neither a database nor the bucket in
//! which other people's requests lie. `main.mjs` shows its one method under a name; every export of this crate would be one.

mod counting;
mod keeping;

use serde_json::json;
use swarm_cloudflare::log::Log;
use swarm_cloudflare::{Bindings, Misconfigured, SystemClock, caller, js};
use swarm_domain::ports::Clock;
use swarm_domain::rejected::RejectedRequest;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
// Linked for its start function, which lets the next request find a fresh module after a panic; worker-build's shim needs it.
use worker as _;
use worker_sys::Context;

const LOG: Log = Log::new("swarm-rejections");

#[wasm_bindgen]
extern "C" {
    /// The instance of `Rejections` that serves this call.
    pub type Entrypoint;
    #[wasm_bindgen(method, getter)]
    fn ctx(this: &Entrypoint) -> Context;
    #[wasm_bindgen(method, getter)]
    fn env(this: &Entrypoint) -> JsValue;
}

/// `report(request: string, body?: Uint8Array): Promise<void>`. The request is a `RejectedRequest` as JSON. Without a body it is
/// counted only.
#[wasm_bindgen(this)]
pub async fn report(this: Entrypoint, request: String, body: JsValue) -> Result<JsValue, JsValue> {
    caller::require(&this.ctx())?;
    let request =
        RejectedRequest::from_json(request.as_bytes()).map_err(|error| js::error(&error.to_string()))?;
    let bindings = Bindings::new(this.env());
    if let Err(Misconfigured(problem)) = take(&this.ctx(), &bindings, &request, &body).await {
        LOG.error("cannot take reports", json!({ "error": problem }));
    }
    Ok(JsValue::UNDEFINED)
}

async fn take(
    context: &Context,
    bindings: &Bindings,
    request: &RejectedRequest,
    body: &JsValue,
) -> Result<(), Misconfigured> {
    let now = SystemClock.now();
    counting::count(context, bindings.ledger()?, request, now);
    keeping::keep(bindings, request, body, now).await
}
