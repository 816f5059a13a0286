//! Who calls an RPC method: the `props` of the service binding, which only somebody who may deploy can set.

use wasm_bindgen::JsValue;
use worker_sys::Context;

use crate::js;

/// Refuses a call whose binding does not say who calls.
pub fn require(context: &Context) -> Result<(), JsValue> {
    match js::text(&context.props(), "caller") {
        Some(caller) if !caller.is_empty() => Ok(()),
        _ => Err(js::error("the service binding does not say who calls: give it props { caller }")),
    }
}
