//! Small documents of other services, within limits of size and time.

use js_sys::Promise;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::JsFuture;

use crate::js;

#[wasm_bindgen(module = "/src/download.mjs")]
extern "C" {
    #[wasm_bindgen(js_name = download)]
    fn start(url: &str, body: Option<&str>, bytes_max: usize, ms: f64) -> Promise;
}

/// The text at an address, or what is answered to JSON that is posted there. Only a 2xx counts, and redirects are not
/// followed. The error is a sentence for the log.
pub async fn download(url: &str, body: Option<&str>, bytes_max: usize, ms: u64) -> Result<String, String> {
    let text = JsFuture::from(start(url, body, bytes_max, ms as f64)).await.map_err(|e| reason(&e, ms))?;
    text.as_string().ok_or_else(|| "the answer is not text".to_owned())
}

fn reason(error: &JsValue, ms: u64) -> String {
    if js::text(error, "name").as_deref() == Some("TimeoutError") {
        return format!("no answer within {ms} ms");
    }
    js::error_message(error)
}
