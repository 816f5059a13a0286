//! Waiting: for a while, for something but not for ever, and after the answer.

use std::cell::Cell;
use std::future::Future;

use js_sys::{Array, Function, Promise};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, future_to_promise};
use worker_sys::Context;

#[wasm_bindgen(module = "/src/runtime.mjs")]
extern "C" {
    #[wasm_bindgen(js_name = startTimer)]
    fn start_timer(callback: &Function, ms: f64) -> JsValue;
    #[wasm_bindgen(js_name = stopTimer)]
    fn stop_timer(timer: &JsValue);
    fn within(promise: &Promise, ms: f64) -> Promise;
}

/// A running timer; dropping it stops it, so that a deadline that was met leaves nothing behind.
struct Timer(JsValue);

impl Drop for Timer {
    fn drop(&mut self) {
        stop_timer(&self.0);
    }
}

/// Waits.
pub async fn sleep_ms(ms: u64) {
    let timer = Cell::new(None);
    let rang = Promise::new(&mut |resolve, _| timer.set(Some(Timer(start_timer(&resolve, ms as f64)))));
    // The promise is only ever resolved.
    let _ = JsFuture::from(rang).await;
}

/// What the promise brings, or `None` if it takes longer than `ms` milliseconds.
pub async fn within_ms(ms: u64, promise: &Promise) -> Option<Result<JsValue, JsValue>> {
    match JsFuture::from(within(promise, ms as f64)).await {
        Ok(settled) => settled.dyn_ref::<Array>().map(|value| Ok(value.get(0))),
        Err(error) => Some(Err(error)),
    }
}

/// Goes on after the answer has been given. If the runtime does not allow it, the work is dropped; callers only put work
/// here that may be lost.
pub fn after_answer(context: &Context, work: impl Future<Output = ()> + 'static) {
    let promise = future_to_promise(async move {
        work.await;
        Ok(JsValue::UNDEFINED)
    });
    let _ = context.wait_until(&promise);
}
