//! The adapter Worker: `POST /webhook/{provider}` and `POST /webhook/{provider}/{tenant}`.
//!
//! One build serves every provider; the variable `PROVIDERS` says which of them a deployment answers for. A request goes
//! through `route` (what is asked for), `body` (its bytes, bounded), `swarm-verify` (is it genuine), `event` (our envelope),
//! the core, and `answer`. Nothing is answered 2xx that the core has not recorded.

mod answer;
mod body;
mod event;
mod route;
mod settings;

use serde_json::json;
use swarm_client::EventPlatform;
use swarm_cloudflare::log::Log;
use swarm_cloudflare::{Bindings, SystemClock};
use swarm_domain::ports::Clock;
use swarm_domain::time::Timestamp;
use swarm_verify::{Headers, Verified};
use worker::{Context, Env, Request, Response, Result};

use crate::answer::Refusal;
use crate::route::Route;
use crate::settings::Settings;

const LOG: Log = Log::new("swarm-adapter");

/// The HTTP handler.
#[worker::event(fetch)]
pub async fn fetch(request: Request, env: Env, _context: Context) -> Result<Response> {
    match take(request, env.into()).await {
        Ok(receipts) => answer::receipts(&receipts),
        Err(refusal) => refusal.response(),
    }
}

async fn take(mut request: Request, env: worker::wasm_bindgen::JsValue) -> Result<Vec<swarm_client::Receipt>, Refusal> {
    let bindings = Bindings::new(env.clone());
    let url = request.url().map(String::from).unwrap_or_default();
    let route = Route::find(&request.path(), &bindings)?;
    let settings = Settings::load(&bindings, route.provider.name())?;
    if request.method() != worker::Method::Post {
        return Err(Refusal::MethodNotAllowed);
    }
    let headers: Headers = request.headers().entries().collect();
    let bytes = body::read(&mut request, settings.body_bytes_max).await?;
    let signed = swarm_verify::Request { method: "POST", url: &url, headers: &headers, body: &bytes };
    let now = SystemClock.now();
    let verified = route
        .provider
        .verify(&signed, &settings.verification, now.unix_ms().div_euclid(1000))
        .map_err(|rejection| {
            let fields = json!({ "provider": route.provider.name(), "tenant": route.tenant,
                                 "reason": rejection.to_string() });
            LOG.error("rejected a webhook", fields);
            Refusal::Rejected(rejection)
        })?;
    publish(&env, &route, &settings, verified, now).await
}

async fn publish(
    env: &worker::wasm_bindgen::JsValue,
    route: &Route,
    settings: &Settings,
    verified: Verified<'_>,
    now: Timestamp,
) -> Result<Vec<swarm_client::Receipt>, Refusal> {
    let core = EventPlatform::bound(env, "EVENT_PLATFORM")?;
    let mut events = verified.events.into_iter().map(|verified| event::platform_event(route, settings, verified, now));
    let events: Vec<_> = events.by_ref().collect();
    match events.as_slice() {
        [] => Ok(Vec::new()),
        [event] => Ok(vec![core.publish(event).await?]),
        many => {
            let mut receipts = Vec::with_capacity(many.len());
            for batch in many.chunks(swarm_domain::limits::PUBLISH_BATCH_MAX) {
                receipts.extend(core.publish_batch(batch).await?);
            }
            Ok(receipts)
        }
    }
}
