//! What arrives: headers and a body.

use swarm_cloudflare::body::{self, BodyError};
use swarm_verify::Headers;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use web_sys::Request;

use crate::answer::Refusal;

#[wasm_bindgen(module = "/src/incoming.mjs")]
extern "C" {
    #[wasm_bindgen(catch, js_name = headerLines)]
    fn header_lines(request: &Request) -> Result<String, JsValue>;
}

/// All headers, as the runtime shows them. They cross as one text rather than one by one.
pub fn headers(request: &Request) -> Result<Headers, Refusal> {
    let lines = header_lines(request).map_err(|_| Refusal::Unreadable)?;
    Ok(lines.split('\n').filter_map(|line| line.split_once(':')).collect())
}

/// The whole body, if it is not larger than the limit.
pub async fn body(request: &Request, bytes_max: usize) -> Result<Vec<u8>, Refusal> {
    body::read(request, bytes_max).await.map_err(|error| match error {
        BodyError::TooLarge(max) => Refusal::TooLarge(max),
        BodyError::Unreadable => Refusal::Unreadable,
    })
}
