//! Publishing events from a Rust Worker.
//!
//! The Worker binds the core's entrypoint `EventPlatformRpc` as a service, usually under the name `EVENT_PLATFORM`, with
//! `props` that say who it is. Payloads are handed over as JSON text and reach consumers to the byte.

use serde::Serialize;
use swarm_cloudflare::{js, runtime};
pub use swarm_domain::receipt::{DispatchReceipt, Receipt, ReceiptStatus, Recorded, RefusalCode, Refused};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

/// How long a call may take. RPC calls have been seen to never settle, and a provider gives up after a few seconds anyway.
const DEADLINE_MS: u64 = 8_000;

/// An event to publish. Optional fields that are `None` are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// 1 to 200 visible ASCII characters, unique within the tenant; the same fact must carry the same id.
    pub id: String,
    /// The tenant; may be absent if the service binding names just one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Two or more lower-case words joined by dots.
    pub r#type: String,
    /// When it happened, RFC 3339.
    pub timestamp: String,
    /// The system that the fact comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What the fact is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The version of the payload's shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Groups everything that one request set off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// What caused this event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<String>,
    /// Who did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// W3C trace context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The payload's JSON text.
    #[serde(skip)]
    pub payload_json: String,
}

/// The gateway did not answer. The event may be recorded all the same; publishing it again is safe.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The Worker has no such service binding, or it leads elsewhere.
    #[error(
        "service binding {0} is missing or has no publish(); bind swarm-core's entrypoint EventPlatformRpc"
    )]
    NoBinding(String),
    /// The call was thrown back.
    #[error("the gateway did not take the call: {0}")]
    Fault(String),
    /// The call took too long.
    #[error("the gateway did not answer within {DEADLINE_MS} ms")]
    TimedOut,
}

#[wasm_bindgen]
extern "C" {
    type Rpc;
    #[wasm_bindgen(method, catch)]
    fn publish(this: &Rpc, event: &JsValue) -> Result<js_sys::Promise, JsValue>;
    #[wasm_bindgen(method, catch, js_name = publishBatch)]
    fn publish_batch(this: &Rpc, events: &JsValue) -> Result<js_sys::Promise, JsValue>;
}

/// The gateway, as its service binding shows it.
pub struct EventPlatform(Rpc);

impl EventPlatform {
    /// The service binding `name` of a Worker's environment.
    pub fn bound(env: &JsValue, name: &str) -> Result<Self, PublishError> {
        let binding = js::property(env, name);
        if binding.is_undefined() || binding.is_null() {
            return Err(PublishError::NoBinding(name.to_owned()));
        }
        Ok(Self(binding.unchecked_into()))
    }

    /// Publishes one event. A refusal is a [`Receipt::Refused`], not an error.
    pub async fn publish(&self, event: &Event) -> Result<Receipt, PublishError> {
        let answer = settled(self.0.publish(&event.to_js()?)).await?;
        serde_json::from_str(&answer).map_err(|e| PublishError::Fault(e.to_string()))
    }

    /// Publishes up to 100 events; one receipt each, in order.
    pub async fn publish_batch(&self, events: &[Event]) -> Result<Vec<Receipt>, PublishError> {
        let array = js_sys::Array::new();
        for event in events {
            array.push(&event.to_js()?);
        }
        let answer = settled(self.0.publish_batch(&array)).await?;
        serde_json::from_str(&answer).map_err(|e| PublishError::Fault(e.to_string()))
    }
}

impl Event {
    fn to_js(&self) -> Result<JsValue, PublishError> {
        let text = serde_json::to_string(self).map_err(|e| PublishError::Fault(e.to_string()))?;
        let event = js_sys::JSON::parse(&text).map_err(|e| PublishError::Fault(js::error_message(&e)))?;
        // Setting a property of a fresh plain object cannot fail.
        let _ = js_sys::Reflect::set(&event, &"payloadJson".into(), &self.payload_json.as_str().into());
        Ok(event)
    }
}

/// The answer as JSON text.
async fn settled(call: Result<js_sys::Promise, JsValue>) -> Result<String, PublishError> {
    let fault = |error: JsValue| PublishError::Fault(js::error_message(&error));
    let answer =
        runtime::within_ms(DEADLINE_MS, &call.map_err(fault)?).await.ok_or(PublishError::TimedOut)?;
    let text = answer.and_then(|answer| js_sys::JSON::stringify(&answer)).map_err(fault)?;
    Ok(String::from(text))
}
