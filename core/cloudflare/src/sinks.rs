//! Sinks of alerts, by HTTP.

use std::collections::BTreeMap;
use std::fmt;

use js_sys::Promise;
use swarm_domain::alert::Sink;
use swarm_domain::limits::ALERT_DEADLINE_MS;
use swarm_domain::ports::{Post, SinkError, Sinks};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::JsFuture;

use crate::js;

#[wasm_bindgen(module = "/src/sinks.mjs")]
extern "C" {
    fn post(url: &str, headers: &JsValue, body: &str, ms: f64) -> Promise;
}

/// Sinks with their addresses, which are secrets.
pub struct HttpSinks(BTreeMap<String, String>);

/// Only the names.
impl fmt::Debug for HttpSinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl HttpSinks {
    /// The sinks that have an address.
    pub fn new(sinks: &[Sink]) -> Self {
        let urls = sinks.iter().filter_map(|sink| Some((sink.name.clone(), sink.url()?.to_owned())));
        Self(urls.collect())
    }
}

impl Sinks for HttpSinks {
    async fn post(&self, sink: &str, message: Post) -> Result<(), SinkError> {
        let url = self.0.get(sink).ok_or_else(|| SinkError("the sink has no address".to_owned()))?;
        let headers: Vec<(&str, JsValue)> =
            message.headers.iter().map(|(name, value)| (*name, value.into())).collect();
        let answer = post(url, &js::object(&headers), &message.body, ALERT_DEADLINE_MS as f64);
        match JsFuture::from(answer).await {
            Ok(status) => taken(status.as_f64().unwrap_or_default()),
            Err(error) => Err(SinkError(reason(&error, url))),
        }
    }
}

fn taken(status: f64) -> Result<(), SinkError> {
    if (200.0..300.0).contains(&status) { Ok(()) } else { Err(SinkError(format!("HTTP {status}"))) }
}

/// Why there was no answer. The runtime likes to quote addresses, which nobody may read.
fn reason(error: &JsValue, url: &str) -> String {
    if js::text(error, "name").as_deref() == Some("TimeoutError") {
        return format!("no answer within {ALERT_DEADLINE_MS} ms");
    }
    let message = js::error_message(error);
    if message.contains("://") || message.contains(url) { "the request failed".to_owned() } else { message }
}
