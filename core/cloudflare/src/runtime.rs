//! Waiting: for a while, for something but not for ever, and after the answer.

use std::future::Future;
use std::time::Duration;

use futures_util::future::{Either, select};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::future_to_promise;
use worker::Delay;
use worker::worker_sys::Context;

/// Waits.
pub async fn sleep_ms(ms: u64) {
    Delay::from(Duration::from_millis(ms)).await;
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
