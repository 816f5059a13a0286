//! Waiting: for a while, for something but not for ever, and after the answer.

use std::cell::Cell;
use std::future::Future;

use futures_util::future::{Either, select};
use js_sys::{Function, Promise};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::{JsFuture, future_to_promise};
use worker_sys::Context;

#[wasm_bindgen(module = "/src/runtime.mjs")]
extern "C" {
    #[wasm_bindgen(js_name = startTimer)]
    fn start_timer(callback: &Function, ms: f64) -> JsValue;
    #[wasm_bindgen(js_name = stopTimer)]
    fn stop_timer(timer: &JsValue);
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

/// The future's value, or `None` if it takes longer than `ms` milliseconds.
pub async fn within_ms<F: Future>(ms: u64, future: F) -> Option<F::Output> {
    match select(Box::pin(future), Box::pin(sleep_ms(ms))).await {
        Either::Left((value, _)) => Some(value),
        Either::Right(_) => None,
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
