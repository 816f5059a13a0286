//! What the provider is told: 2xx only for what the ledger has, and a status that makes it try again exactly when that helps.

use serde::Serialize;
use serde_json::json;
use swarm_client::{PublishError, Receipt, ReceiptStatus, RefusalCode};
use swarm_cloudflare::{Misconfigured, js};
use swarm_verify::{Answer, Rejection};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use web_sys::Response;

use crate::LOG;

#[wasm_bindgen(module = "/src/answer.mjs")]
extern "C" {
    #[wasm_bindgen(catch, js_name = response)]
    fn new_response(status: u16, body: &str, lines: &str) -> Result<Response, JsValue>;
}

/// When a provider should try again.
const RETRY_AFTER_SECONDS: &str = "30";

/// A request that is not taken.
#[derive(Debug)]
pub enum Refusal {
    /// No such provider or path here.
    NotFound,
    /// A method that the provider does not use; those that it does.
    MethodNotAllowed(&'static [&'static str]),
    /// The body is larger than this many bytes.
    TooLarge(usize),
    /// The body did not arrive whole.
    Unreadable,
    /// It is not genuine, or not readable.
    Rejected(Rejection),
    /// The deployment or the core cannot take anything now.
    Unavailable,
}

impl From<Misconfigured> for Refusal {
    fn from(error: Misconfigured) -> Self {
        LOG.error("cannot take webhooks", json!({ "error": error.to_string() }));
        Self::Unavailable
    }
}

impl From<PublishError> for Refusal {
    fn from(error: PublishError) -> Self {
        LOG.error("the core did not answer", json!({ "error": error.to_string() }));
        Self::Unavailable
    }
}

impl Refusal {
    /// The HTTP answer: `{ error: { code, message } }`.
    pub fn response(&self) -> Result<Response, JsValue> {
        let (status, code, message) = match self {
            Self::NotFound => (404, "not_found", "no webhook is served at this address".to_owned()),
            Self::MethodNotAllowed(methods) => {
                let message = format!("webhooks come here with {}", methods.join(", "));
                let allow = [("allow", methods.join(", "))];
                return respond(405, &allow, &error_body("method_not_allowed", &message)?);
            }
            Self::TooLarge(max) => (413, "payload_too_large", format!("the limit is {max} bytes")),
            Self::Unreadable => (400, "unreadable", "the body did not arrive whole".to_owned()),
            Self::Rejected(rejection) => {
                (rejection.status(), rejection.code(), rejection.public_message().to_owned())
            }
            Self::Unavailable => (503, "unavailable", "the event was not recorded; send it again".to_owned()),
        };
        error(status, code, &message)
    }
}

/// The body of a 2xx.
#[derive(Serialize)]
struct Receipts<'a> {
    events: &'a [Receipt],
}

/// The HTTP answer to events that the core has answered for. The worst receipt decides; a retry of the request then finds
/// the others to be duplicates. If all are recorded, a provider that wants an answer of its own gets it.
pub fn receipts(receipts: &[Receipt], wanted: Option<&Answer>) -> Result<Response, JsValue> {
    let worst = receipts.iter().map(status).max_by_key(|status| severity(*status)).unwrap_or(200);
    match worst {
        200 | 202 => match wanted {
            Some(answer) => respond(answer.status, &answer.headers, &answer.body),
            None => respond(worst, &[], &to_json(&Receipts { events: receipts })?),
        },
        503 => Refusal::Unavailable.response(),
        413 => error(413, "payload_too_large", "an event is larger than the gateway takes"),
        403 => error(403, "forbidden", "this address does not take events of that tenant or type"),
        _ => error(400, "invalid_event", "an event breaks the gateway's rules"),
    }
}

fn status(receipt: &Receipt) -> u16 {
    match receipt {
        Receipt::Recorded(recorded) if recorded.status == ReceiptStatus::Accepted => 202,
        Receipt::Recorded(_) => 200,
        Receipt::Refused(refused) => match refused.code {
            RefusalCode::InvalidEvent => 400,
            RefusalCode::Forbidden => 403,
            RefusalCode::PayloadTooLarge => 413,
            RefusalCode::Unavailable => 503,
        },
    }
}

/// 503 above all: it is the only one that a retry can heal.
fn severity(status: u16) -> u16 {
    if status == 503 { u16::MAX } else { status }
}

fn error(status: u16, code: &str, message: &str) -> Result<Response, JsValue> {
    let retry_after = [("retry-after", RETRY_AFTER_SECONDS.to_owned())];
    let headers = if status == 503 { retry_after.as_slice() } else { &[] };
    respond(status, headers, &error_body(code, message)?)
}

fn error_body(code: &str, message: &str) -> Result<String, JsValue> {
    to_json(&json!({ "error": { "code": code, "message": message } }))
}

fn to_json<T: Serialize>(body: &T) -> Result<String, JsValue> {
    serde_json::to_string(body).map_err(|error| js::error(&error.to_string()))
}

/// JSON, unless the headers say something else.
fn respond(status: u16, headers: &[(&str, String)], body: &str) -> Result<Response, JsValue> {
    let mut lines = String::new();
    if !headers.iter().any(|(name, _)| *name == "content-type") && !body.is_empty() {
        lines.push_str("content-type:application/json");
    }
    for (name, value) in headers {
        lines.push_str(if lines.is_empty() { "" } else { "\n" });
        lines.push_str(name);
        lines.push(':');
        lines.push_str(value);
    }
    new_response(status, body, &lines)
}
