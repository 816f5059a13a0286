//! The adapter Worker: `POST /webhook/{provider}` and `POST /webhook/{provider}/{tenant}`.
//!
//! One build serves every provider; the variable `PROVIDERS` says which of them a deployment answers for. A request goes
//! through `route` (what is asked for), `incoming` (its headers and its bytes, bounded), `swarm-verify` (is it genuine),
//! `event` (our envelope), the core, and `answer`. Nothing is answered 2xx that the core has not recorded.

mod answer;
mod event;
mod incoming;
mod route;
mod settings;

// Linked for its start function, which lets the next request find a fresh module after a panic; worker-build's shim needs it.
use serde_json::json;
use swarm_client::{EventPlatform, PublishError, Receipt};
use swarm_cloudflare::log::Log;
use swarm_cloudflare::{Bindings, SystemClock};
use swarm_domain::limits::PUBLISH_BATCH_MAX;
use swarm_domain::ports::Clock;
use swarm_verify::Rejection;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use web_sys::{Request, Response};
use worker as _;

use crate::answer::Refusal;
use crate::route::Route;
use crate::settings::Settings;

const LOG: Log = Log::new("swarm-adapter");

/// The HTTP handler.
#[wasm_bindgen]
pub async fn fetch(request: Request, env: JsValue, _context: JsValue) -> Result<Response, JsValue> {
    match take(&request, &env).await {
        Ok(receipts) => answer::receipts(&receipts),
        Err(refusal) => refusal.response(),
    }
}

async fn take(request: &Request, env: &JsValue) -> Result<Vec<Receipt>, Refusal> {
    let bindings = Bindings::new(env.clone());
    let url = request.url();
    let route = Route::find(&url, &bindings)?;
    let settings = Settings::load(&bindings, route.provider.name())?;
    if request.method() != "POST" {
        return Err(Refusal::MethodNotAllowed);
    }
    let headers = incoming::headers(request)?;
    let body = incoming::body(request, settings.body_bytes_max).await?;
    let signed = swarm_verify::Request { method: "POST", url: &url, headers: &headers, body: &body };
    let now = SystemClock.now();
    let verified = route
        .provider
        .verify(&signed, &settings.verification, now.unix_ms().div_euclid(1000))
        .map_err(|rejection| rejected(&route, rejection))?;
    let event = |verified| event::platform_event(&route, &settings, verified, now);
    let events: Vec<_> = verified.events.into_iter().map(event).collect();
    Ok(publish(&EventPlatform::bound(env, "EVENT_PLATFORM")?, &events).await?)
}

async fn publish(core: &EventPlatform, events: &[swarm_client::Event]) -> Result<Vec<Receipt>, PublishError> {
    if let [event] = events {
        return Ok(vec![core.publish(event).await?]);
    }
    let mut receipts = Vec::with_capacity(events.len());
    for batch in events.chunks(PUBLISH_BATCH_MAX) {
        receipts.extend(core.publish_batch(batch).await?);
    }
    Ok(receipts)
}

fn rejected(route: &Route, rejection: Rejection) -> Refusal {
    let fields = json!({ "provider": route.provider.name(), "tenantId": route.tenant, "reason": rejection.reason(),
                         "detail": rejection.to_string() });
    LOG.error("rejected a webhook", fields);
    Refusal::Rejected(rejection)
}
