//! The RPC method `reverify`, for the cockpit: a request that was kept is verified once more, with the secrets of today and as of
//! the moment at which it arrived. No HTTP request gets here.

use swarm_client::Receipt;
use swarm_cloudflare::{Bindings, caller, js};
use swarm_domain::rejected::{RejectedRequest, Verdict};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use worker_sys::Context;

use crate::reports::Cause;
use crate::route::Route;
use crate::{Arrived, Refusal, Taken, take};

#[wasm_bindgen]
extern "C" {
    /// The instance of the entrypoint that serves this call.
    pub type Entrypoint;
    #[wasm_bindgen(method, getter)]
    fn ctx(this: &Entrypoint) -> Context;
    #[wasm_bindgen(method, getter)]
    fn env(this: &Entrypoint) -> JsValue;
}

/// `reverify(request: string, body: Uint8Array): Promise<string>`. The request is a `RejectedRequest` as JSON, the answer a
/// `Verdict`. If it passes, its events are published.
#[wasm_bindgen(this)]
pub async fn reverify(this: Entrypoint, request: String, body: Vec<u8>) -> Result<String, JsValue> {
    caller::require(&this.ctx())?;
    let request =
        RejectedRequest::from_json(request.as_bytes()).map_err(|error| js::error(&error.to_string()))?;
    let verdict = verdict(&again(request, body, &this.env()).await);
    serde_json::to_string(&verdict).map_err(|error| js::error(&error.to_string()))
}

async fn again(request: RejectedRequest, body: Vec<u8>, env: &JsValue) -> Result<Taken, Refusal> {
    let bindings = Bindings::new(env.clone());
    let at = request.received_at();
    let route = Route::of(&request.provider, request.tenant_id, &bindings)?;
    let headers = request.headers.into_iter().collect();
    let arrived = Arrived { method: request.method, url: request.url, headers, body, at };
    take(&arrived, &route, &bindings, env).await
}

fn verdict(outcome: &Result<Taken, Refusal>) -> Verdict {
    let cause = Cause::of(outcome);
    let receipts = outcome.as_ref().map_or(&[][..], |taken| &taken.receipts);
    let recorded = receipts.iter().filter_map(|receipt| match receipt {
        Receipt::Recorded(recorded) => Some(recorded.event_id.clone()),
        Receipt::Refused(_) => None,
    });
    Verdict {
        recorded: cause.is_none(),
        event_ids: recorded.collect(),
        reason: cause.as_ref().map(|cause| cause.reason.to_owned()),
        detail: cause.map(|cause| cause.detail),
    }
}
