//! The cockpit Worker: what operators do, as a JSON API under `/api/v1/`.
//!
//! A request goes through `auth` (who is it), `route` (what is asked for, and may they), a handler per resource, and
//! `answer`. The rules are `swarm-domain`'s; a handler reads, calls, and writes what came of it.

mod answer;
mod archives;
mod auth;
mod call;
mod events;
mod incidents;
mod query;
mod refusal;
mod rejected;
mod replays;
mod route;

use serde_json::json;
use swarm_cloudflare::Bindings;
use swarm_cloudflare::log::Log;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use web_sys::{Request, Response};
// Linked for its start function, which lets the next request find a fresh module after a panic; worker-build's shim needs it.
use worker as _;

use crate::answer::{Body, body};
use crate::auth::Operators;
use crate::call::Call;
use crate::refusal::Refusal;
use crate::route::Route;

const LOG: Log = Log::new("swarm-cockpit");

/// The HTTP handler.
#[wasm_bindgen]
pub async fn fetch(request: Request, env: JsValue, _context: JsValue) -> Result<Response, JsValue> {
    answer::respond(serve(&request, &Bindings::new(env)).await)
}

async fn serve(request: &Request, bindings: &Bindings) -> Result<Body, Refusal> {
    let url = request.url();
    let (path, query) = query::split(&url);
    if !route::is_api(path) {
        return Err(Refusal::NoRoute);
    }
    let operators = operators(bindings)?;
    let authorization = request.headers().get("authorization").ok().flatten();
    let operator = operators.authenticate(authorization.as_deref()).ok_or(Refusal::Unauthorized)?;
    let method = request.method();
    let route = Route::find(&method, path)?;
    match route.scope() {
        Some(scope) if !operator.may(scope) => return Err(Refusal::Forbidden(scope)),
        _ => {}
    }
    let call = &Call::new(request, query, operator, bindings)?;
    match route {
        Route::Whoami => body(operator),
        Route::ListEvents => events::list(call).await,
        Route::FollowEvents => events::follow(call).await,
        Route::ViewEvent => events::view(call).await,
        Route::ReadPayload => events::payload(call, bindings).await,
        Route::ListIncidents => incidents::list(call).await,
        Route::ViewIncident(id) => incidents::view(call, id).await,
        Route::TriageIncident(id) => incidents::triage(call, id).await,
        Route::IgnoreIncident(id) => incidents::ignore(call, id).await,
        Route::ReplayIncident(id) => incidents::replay(call, id).await,
        Route::ListReplays => replays::list(call).await,
        Route::CreateReplay => replays::create(call).await,
        Route::ViewReplay(id) => replays::view(call, id).await,
        Route::RunReplay(id) => replays::run(call, id).await,
        Route::CancelReplay(id) => replays::cancel(call, id).await,
        Route::CountRejections => rejected::count(call).await,
        Route::ListRejected => rejected::list(call, bindings).await,
        Route::ViewRejected(id) => rejected::view(call, bindings, id).await,
        Route::ReverifyRejected => rejected::reverify(call, bindings).await,
        Route::ListArchives => archives::list(call, bindings).await,
        Route::RestoreArchive => archives::restore(call, bindings).await,
    }
}

/// Everybody who has a token; without any, nobody gets in.
fn operators(bindings: &Bindings) -> Result<Operators, Refusal> {
    let operators = match bindings.json_var("OPERATOR_TOKENS") {
        Ok(json) => Operators::parse(&json).map_err(|problem| {
            LOG.error("nobody can log in", json!({ "error": format!("OPERATOR_TOKENS {problem}") }));
            Refusal::Locked
        })?,
        Err(_) => return Err(Refusal::Locked),
    };
    if operators.is_empty() { Err(Refusal::Locked) } else { Ok(operators) }
}
