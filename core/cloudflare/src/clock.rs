//! The runtime's clock. In production it moves only when the Worker waits for something.

use swarm_domain::ports::Clock;
use swarm_domain::time::Timestamp;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::runtime;

/// `Date.now()`.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(js_sys::Date::now() as i64)
    }

    async fn sleep_ms(&self, ms: u64) {
        runtime::sleep_ms(ms).await;
    }
}

#[wasm_bindgen]
extern "C" {
    /// A random token of 36 characters, unique to a run.
    #[wasm_bindgen(js_namespace = crypto, js_name = randomUUID)]
    pub fn random_token() -> String;
}
