//! The RPC methods. Whatever a caller passes, it gets receipts: refusals are values, and only a fault of this Worker itself is
//! thrown.

use std::rc::Rc;

use serde::Serialize;
use serde_json::json;
use swarm_cloudflare::clock::random_token;
use swarm_cloudflare::{Bindings, Misconfigured, SystemClock, js};
use swarm_domain::accept::Acceptor;
use swarm_domain::caller::Caller;
use swarm_domain::event::{EventInput, InvalidEvent};
use swarm_domain::limits::PUBLISH_BATCH_MAX;
use swarm_domain::ports::Clock;
use swarm_domain::receipt::{Receipt, Refused};
use swarm_domain::states::DispatchState;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use worker_sys::Context;

use crate::settings::Settings;
use crate::{LOG, input, marks};

#[wasm_bindgen]
extern "C" {
    /// The instance of `EventPlatformRpc` that serves this call.
    pub type Entrypoint;
    #[wasm_bindgen(method, getter)]
    fn ctx(this: &Entrypoint) -> Context;
    #[wasm_bindgen(method, getter)]
    fn env(this: &Entrypoint) -> JsValue;
}

/// `publish(event): Promise<Receipt>`
#[wasm_bindgen(this)]
pub async fn publish(this: Entrypoint, event: JsValue) -> Result<JsValue, JsValue> {
    match receipts(&this, vec![input::read(&event)]).await.pop() {
        Some(receipt) => to_js(&receipt),
        None => Err(js::error("the gateway made no receipt")),
    }
}

/// `publishBatch(events): Promise<Receipt[]>`, at most 100 events, order kept.
#[wasm_bindgen(this, js_name = publishBatch)]
pub async fn publish_batch(this: Entrypoint, events: JsValue) -> Result<JsValue, JsValue> {
    let inputs = match input::read_many(&events) {
        Ok(inputs) => inputs,
        Err(refused) => return to_js(&[Receipt::Refused(refused)]),
    };
    to_js(&receipts(&this, inputs).await)
}

fn to_js<T: Serialize + ?Sized>(answer: &T) -> Result<JsValue, JsValue> {
    let text = serde_json::to_string(answer).map_err(|e| js::error(&e.to_string()))?;
    js_sys::JSON::parse(&text)
}

/// One receipt per input, in order.
async fn receipts(this: &Entrypoint, inputs: Vec<Result<EventInput, InvalidEvent>>) -> Vec<Receipt> {
    let refuse_all = |refused: Refused| inputs.iter().map(|_| Receipt::Refused(refused.clone())).collect();
    let props = js_sys::JSON::stringify(&this.ctx().props()).map(String::from).unwrap_or_default();
    let caller = match Caller::parse(&props) {
        Ok(caller) => caller,
        Err(forbidden) => {
            LOG.error("refused a caller without identity", json!({ "error": forbidden.to_string() }));
            return refuse_all(forbidden.into());
        }
    };
    let settings = match Settings::load(&Bindings::new(this.env())) {
        Ok(settings) => settings,
        Err(Misconfigured(problem)) => {
            LOG.error("cannot accept events", json!({ "error": problem }));
            return refuse_all(Refused::unavailable("the gateway is misconfigured; its log says how"));
        }
    };
    accept(this, &settings, &caller, inputs).await
}

async fn accept(
    this: &Entrypoint,
    settings: &Rc<Settings>,
    caller: &Caller,
    inputs: Vec<Result<EventInput, InvalidEvent>>,
) -> Vec<Receipt> {
    let acceptor = Acceptor {
        ledger: &settings.ledger,
        queues: &settings.queues,
        blobs: &settings.blobs,
        routes: &settings.routes,
    };
    let mut readable = Vec::with_capacity(inputs.len());
    let unreadable = inputs.into_iter().map(|input| input.map(|input| readable.push(input)).err());
    let unreadable: Vec<_> = unreadable.collect();
    let accepted = acceptor.accept(caller, readable, SystemClock.now(), &random_token()).await;
    marks::write_later(&this.ctx(), settings, accepted.settlements);
    let mut answers = accepted.receipts.into_iter();
    let in_place = unreadable.into_iter().filter_map(|unreadable| match unreadable {
        None => answers.next(),
        Some(error) => Some(Receipt::Refused(error.into())),
    });
    in_place.inspect(|receipt| log_trouble(caller, receipt)).collect()
}

/// What goes well is in the ledger; a line is written for what does not.
fn log_trouble(caller: &Caller, receipt: &Receipt) {
    match receipt {
        Receipt::Refused(refused) => LOG.error(
            "refused an event",
            json!({ "caller": caller.caller, "code": refused.code, "error": refused.message }),
        ),
        Receipt::Recorded(recorded) => {
            for dispatch in recorded.dispatches.iter().filter(|d| d.status == DispatchState::Failed) {
                LOG.error(
                    "a topic did not take an event; the sweeper will send it",
                    json!({ "eventId": recorded.event_id, "topic": dispatch.topic,
                            "nextRetryAt": dispatch.next_retry_at }),
                );
            }
        }
    }
}

/// The refusal of a batch that is none.
pub(crate) fn too_many(count: u32) -> Refused {
    InvalidEvent::new("events", format!("holds {count} events; the limit is {PUBLISH_BATCH_MAX}")).into()
}
