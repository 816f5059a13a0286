//! The floor: what any Rust gateway on this platform must do that answers only once an event is stored and sent. One build is
//! both of its Workers: `fetch` is the door, `record` is the core behind it.
//!
//! No signature, no checks, no routes, no duplicates, no leases, no retries; the same ports, the same ledger.

// Linked for its start function, as in every Worker of the gateway.
use worker as _;

use js_sys::Promise;
use swarm_cloudflare::clock::random_token;
use swarm_cloudflare::{Bindings, SystemClock, js};
use swarm_domain::ports::{Clock, Queues, Sql, Statement};
use swarm_domain::topic::Topic;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Request, Response};

const INSERT_EVENT: &str = "
    INSERT INTO event_ledger (tenant_id, event_id, type, occurred_at, payload, payload_hash, receipt, created_at)
    VALUES ('floor', ?1, 'floor.event', ?2, ?3, '', '', ?2)";

const INSERT_DISPATCH: &str = "
    INSERT INTO event_dispatches (tenant_id, event_id, topic, status, next_retry_at, created_at, updated_at)
    VALUES ('floor', ?1, 'floor.events', 'pending', ?2, ?2, ?2)";

#[wasm_bindgen]
extern "C" {
    /// The core as the door's service binding shows it.
    type Core;
    #[wasm_bindgen(method, catch, js_name = record)]
    fn call_record(this: &Core, body: &JsValue) -> Result<Promise, JsValue>;

    /// The instance of the core that serves a call.
    pub type Entrypoint;
    #[wasm_bindgen(method, getter)]
    fn env(this: &Entrypoint) -> JsValue;
}

/// The door: reads the body, hands it on, answers with the id.
#[wasm_bindgen]
pub async fn fetch(request: Request, env: JsValue, _context: JsValue) -> Result<Response, JsValue> {
    let body = JsFuture::from(request.text()?).await?;
    let core: Core = js::property(&env, "CORE").unchecked_into();
    let id = JsFuture::from(core.call_record(&body)?).await?;
    Response::new_with_opt_str(id.as_string().as_deref())
}

/// The core: one round trip to D1, then one send.
#[wasm_bindgen(this)]
pub async fn record(this: Entrypoint, body: String) -> Result<String, JsValue> {
    let bindings = Bindings::new(this.env());
    let ledger = bindings.ledger().map_err(fault)?;
    let (id, now) = (random_token(), SystemClock.now());
    let event = vec![id.as_str().into(), now.into(), body.as_str().into()];
    let dispatch = vec![id.as_str().into(), now.into()];
    let statements = vec![Statement::new(INSERT_EVENT, event), Statement::new(INSERT_DISPATCH, dispatch)];
    ledger.shard(0).batch(statements).await.map_err(fault)?;
    let topic = Topic::try_from("floor.events".to_owned()).map_err(fault)?;
    bindings.queues().send(&topic, body).await.map_err(fault)?;
    Ok(id)
}

fn fault(error: impl std::error::Error) -> JsValue {
    js::error(&error.to_string())
}
