//! The HTTP answer: JSON that no cache keeps and no page can embed.

use serde::Serialize;
use serde_json::json;
use wasm_bindgen::JsValue;
use web_sys::{Headers, Response, ResponseInit};

use crate::refusal::Refusal;

/// What every answer carries.
const HEADERS: [(&str, &str); 7] = [
    ("content-type", "application/json"),
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("strict-transport-security", "max-age=31536000"),
];

/// When a client should try again.
const RETRY_AFTER_SECONDS: &str = "10";

/// The body of an answer that went well.
pub type Body = String;

/// Writes a value as a body.
pub fn body<T: Serialize>(value: &T) -> Result<Body, Refusal> {
    // Our own types can always be written.
    serde_json::to_string(value).map_err(|_| Refusal::Unavailable)
}

/// The answer to a request.
pub fn respond(answer: Result<Body, Refusal>) -> Result<Response, JsValue> {
    let headers = Headers::new()?;
    for (name, value) in HEADERS {
        headers.set(name, value)?;
    }
    let (status, body) = match answer {
        Ok(body) => (200, body),
        Err(refusal) => refused(&refusal, &headers)?,
    };
    let init = ResponseInit::new();
    init.set_status(status);
    init.set_headers(&headers);
    Response::new_with_opt_str_and_init(Some(&body), &init)
}

fn refused(refusal: &Refusal, headers: &Headers) -> Result<(u16, Body), JsValue> {
    match refusal {
        Refusal::MethodNotAllowed(allowed) => headers.set("allow", allowed)?,
        Refusal::Unauthorized => headers.set("www-authenticate", "Bearer")?,
        Refusal::Unavailable => headers.set("retry-after", RETRY_AFTER_SECONDS)?,
        _ => {}
    }
    let (status, code, message) = refusal.describe();
    Ok((status, json!({ "error": { "code": code, "message": message } }).to_string()))
}
