//! Reading what a caller passes. Anything may come over RPC: a Map, a Date, a cycle, a function, nothing at all.

use js_sys::Array;
use swarm_cloudflare::js;
use swarm_domain::event::{EventInput, InvalidEvent};
use swarm_domain::limits::PUBLISH_BATCH_MAX;
use swarm_domain::receipt::Refused;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

use crate::api::too_many;

#[wasm_bindgen(module = "/src/input.mjs")]
extern "C" {
    #[wasm_bindgen(catch)]
    fn split(event: &JsValue) -> Result<Array, JsValue>;
}

/// An event as texts, or what is wrong with it.
pub fn read(event: &JsValue) -> Result<EventInput, InvalidEvent> {
    let texts = split(event).map_err(|thrown| refusal(&thrown))?;
    let envelope = texts.get(0).as_string().unwrap_or_default();
    Ok(EventInput { envelope, payload: texts.get(1).as_string() })
}

/// Events of a batch, each read alone.
pub fn read_many(events: &JsValue) -> Result<Vec<Result<EventInput, InvalidEvent>>, Refused> {
    let Some(events) = events.dyn_ref::<Array>() else {
        return Err(InvalidEvent::new("events", "must be an array of events").into());
    };
    if events.length() as usize > PUBLISH_BATCH_MAX {
        return Err(too_many(events.length()));
    }
    Ok(events.iter().map(|event| read(&event)).collect())
}

/// `split` throws `{ field, problem }`; anything else comes from the value itself, such as a stub whose owner is gone.
fn refusal(thrown: &JsValue) -> InvalidEvent {
    match (js::text(thrown, "field"), js::text(thrown, "problem")) {
        (Some(field), Some(problem)) => InvalidEvent::new(&field, problem),
        _ => InvalidEvent::new("event", format!("cannot be read: {}", js::error_message(thrown))),
    }
}
