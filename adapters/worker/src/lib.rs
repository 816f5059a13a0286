//! The adapter Worker: `/webhook/{provider}` and `/webhook/{provider}/{tenant}`.
//!
//! One build serves every provider; the variable `PROVIDERS` says which of them a deployment answers for. A request goes
//! through `route` (what is asked for), `incoming` (its headers and its bytes, bounded), `swarm-verify` (is it genuine),
//! `event` (our envelope), the core, and `answer`. Nothing is answered 2xx that the core has not recorded. What does not pass
//! goes to `reports`, and may come back through `reverify`.

mod answer;
mod event;
mod incoming;
mod keys;
mod reports;
mod reverify;
mod route;
mod served;
mod settings;
mod web_crypto;

// Linked for its start function, which lets the next request find a fresh module after a panic; worker-build's shim needs it.
use serde_json::json;
use swarm_client::{EventPlatform, PublishError, Receipt};
use swarm_cloudflare::download::download;
use swarm_cloudflare::log::Log;
use swarm_cloudflare::{Bindings, SystemClock};
use swarm_domain::limits::PUBLISH_BATCH_MAX;
use swarm_domain::ports::Clock;
use swarm_domain::time::Timestamp;
use swarm_verify::{Answer, Headers, Rejection, Verified};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use web_sys::{Request, Response};
use worker as _;
use worker_sys::Context;

use crate::answer::Refusal;
use crate::route::Route;
use crate::settings::Settings;
use crate::web_crypto::WebCrypto;

const LOG: Log = Log::new("swarm-adapter");

/// The answer to a confirmation is read to its end, but says nothing that is needed.
const CONFIRMATION_BYTES_MAX: usize = 64 * 1024;
/// How long the provider may take for it.
const CONFIRM_MS: u64 = 5_000;

/// The HTTP handler.
#[wasm_bindgen]
pub async fn fetch(request: Request, env: JsValue, context: Context) -> Result<Response, JsValue> {
    match serve(&request, &env, &context).await {
        Ok(taken) => answer::receipts(&taken.receipts, taken.answer.as_ref()),
        Err(refusal) => refusal.response(),
    }
}

/// A request as far as it has been read, and when it came.
struct Arrived {
    method: String,
    url: String,
    headers: Headers,
    body: Vec<u8>,
    at: Timestamp,
}

/// A request whose events the core has answered for.
struct Taken {
    receipts: Vec<Receipt>,
    answer: Option<Answer>,
}

async fn serve(request: &Request, env: &JsValue, context: &Context) -> Result<Taken, Refusal> {
    let bindings = Bindings::new(env.clone());
    let mut arrived = Arrived {
        method: request.method(),
        url: request.url(),
        headers: Headers::default(),
        body: Vec::new(),
        at: SystemClock.now(),
    };
    let route = Route::find(&arrived.url, &bindings)?;
    let outcome = match read(request, &bindings, &route, &mut arrived).await {
        Ok(()) => take(&arrived, &route, &bindings, env).await,
        Err(refusal) => Err(refusal),
    };
    reports::report(env, context, &route, &arrived, &outcome);
    outcome
}

/// Reads headers and body, whatever the settings: a request that comes while they are wrong is kept and not lost.
async fn read(
    request: &Request,
    bindings: &Bindings,
    route: &Route,
    arrived: &mut Arrived,
) -> Result<(), Refusal> {
    let methods = route.provider.methods();
    if !methods.contains(&arrived.method.as_str()) {
        return Err(Refusal::MethodNotAllowed(methods));
    }
    arrived.headers = incoming::headers(request)?;
    arrived.body = incoming::body(request, settings::body_bytes_max(bindings)?).await?;
    Ok(())
}

/// Verifies a request as of its arrival, and publishes its events.
async fn take(
    arrived: &Arrived,
    route: &Route,
    bindings: &Bindings,
    env: &JsValue,
) -> Result<Taken, Refusal> {
    let settings = Settings::load(bindings, route.provider)?;
    let Arrived { method, url, headers, body, at } = arrived;
    let named = settings.tenant_header.as_ref().and_then(|name| headers.single(name).ok().flatten());
    let tenant = settings.tenancy.of_request(route.tenant.as_deref(), named);
    let tenant = tenant.as_deref();
    let verification = settings.verification_of(tenant);
    let signed = swarm_verify::Request { method, url, headers, body };
    let verified = verify(route, &signed, &verification, *at).await.map_err(Refusal::Rejected)?;
    if let Some(url) = &verified.confirm_url {
        confirm(url).await?;
    }
    let answer = verified.answer;
    let event = |verified| event::platform_event(route.provider.name(), &settings, tenant, verified, *at);
    let events: Result<Vec<_>, _> = verified.events.into_iter().map(event).collect();
    let events = events.map_err(Refusal::Rejected)?;
    let receipts = publish(&EventPlatform::bound(env, "EVENT_PLATFORM")?, &events).await?;
    Ok(Taken { receipts, answer })
}

/// The verdict, with the provider's key if it publishes one. A document that lacks the key may be older than the key.
async fn verify<'a>(
    route: &Route,
    request: &swarm_verify::Request<'a>,
    settings: &swarm_verify::Settings,
    now: Timestamp,
) -> Result<Verified<'a>, Rejection> {
    let provider = route.provider;
    let now_unix = now.unix_ms().div_euclid(1000);
    let platform = WebCrypto::default();
    let with = async |key: Option<&str>| {
        let context = swarm_verify::Context { now_unix, key, verifier: &platform };
        platform.settle(|| provider.verify(request, settings, &context)).await
    };
    let Some(source) = provider.key_source(request, settings)? else { return with(None).await };
    match with(Some(&keys::get(&source, now).await?)).await {
        Err(Rejection::KeyUntrusted(why)) => match keys::refresh(&source, now).await {
            Some(newer) => with(Some(&newer)).await,
            None => Err(Rejection::KeyUntrusted(why)),
        },
        verdict => verdict,
    }
}

/// Calls the address by which a provider has its subscription confirmed.
async fn confirm(url: &str) -> Result<(), Refusal> {
    match download(url, None, CONFIRMATION_BYTES_MAX, CONFIRM_MS).await {
        Ok(_) => Ok(()),
        Err(error) => {
            LOG.error("a subscription could not be confirmed", json!({ "error": error }));
            Err(Refusal::Unavailable)
        }
    }
}

/// Publishes events in as many calls as they need, none for a handshake.
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
