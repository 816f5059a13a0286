//! The frame of a cron handler: whom it takes events from, and where it says what kept it from its duty.

use serde_json::json;
use wasm_bindgen::JsValue;

use crate::log::Log;
use crate::{Bindings, Misconfigured, js};

/// Does what the event's cron expression asks for, unless the event is forged: any Worker that binds this one could call its
/// cron handler with an object of its own making, but not with the runtime's class.
pub async fn run(
    event: &JsValue,
    env: JsValue,
    log: &Log,
    duty: impl AsyncFnOnce(&str, &Bindings) -> Result<(), Misconfigured>,
) -> Result<JsValue, JsValue> {
    if js::class_name(event).as_deref() != Some("ScheduledController") {
        return Err(js::error("only the runtime may call scheduled()"));
    }
    let cron = js::text(event, "cron").unwrap_or_default();
    if let Err(Misconfigured(problem)) = duty(&cron, &Bindings::new(env)).await {
        log.error("a cron could not run", json!({ "cron": cron, "error": problem }));
    }
    Ok(JsValue::UNDEFINED)
}
