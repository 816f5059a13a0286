//! The same work done twice, many times over: verifying a Stripe event as the adapter does, and the least that any verifier must
//! do, an HMAC-SHA256 of the same bytes and one scan of the JSON for the same fields. One module, one set of compiler options.

use std::hint::black_box;

use hmac::{Hmac, KeyInit, Mac};
use js_sys::Uint8Array;
use serde::Deserialize;
use serde::de::IgnoredAny;
use sha2::Sha256;
use swarm_verify::public_key::{Check, Verifier};
use swarm_verify::{Context, Headers, Request, Secrets, Settings, provider};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::JsFuture;
use web_sys::Response;
// Linked for its start function, as in every Worker of the gateway.
use worker as _;

/// What the gateway reads of an event.
#[derive(Deserialize)]
#[allow(dead_code, reason = "reading them is all that is measured")]
struct Event<'a> {
    id: &'a str,
    object: &'a str,
    r#type: &'a str,
    created: i64,
    livemode: bool,
    api_version: Option<&'a str>,
    account: Option<&'a str>,
    context: Option<&'a str>,
    #[serde(borrow)]
    request: Option<Id<'a>>,
    #[serde(borrow)]
    data: Data<'a>,
    #[serde(default)]
    related_object: Option<IgnoredAny>,
    #[serde(default)]
    reason: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[allow(dead_code)]
struct Data<'a> {
    #[serde(borrow)]
    object: Id<'a>,
}

#[derive(Deserialize)]
#[allow(dead_code)]
struct Id<'a> {
    id: &'a str,
}

/// Stripe signs with shared secrets.
struct NoPublicKeys;

impl Verifier for NoPublicKeys {
    fn has_signed(&self, _: &Check<'_>) -> bool {
        false
    }
}

/// Does what the header `x-work` says with the body, as often as `x-times` says, and answers how many events were read.
#[wasm_bindgen]
pub async fn fetch(request: web_sys::Request, _env: JsValue, _context: JsValue) -> Result<Response, JsValue> {
    let header = |name: &str| request.headers().get(name).ok().flatten().unwrap_or_default();
    let number = |name: &str| header(name).parse::<u32>().unwrap_or_default();
    let body = Uint8Array::new(&JsFuture::from(request.array_buffer()?).await?).to_vec();
    let (secret, now_unix) = (header("x-secret"), number("x-now"));
    let read = match header("x-work").as_str() {
        "verify" => verify(&body, &header("stripe-signature"), &secret, now_unix, number("x-times")),
        _ => bare(&body, &secret, now_unix, number("x-times")),
    };
    let read = read.map_err(|error| JsValue::from_str(&error))?;
    Response::new_with_opt_str(Some(&read.to_string()))
}

fn verify(body: &[u8], signature: &str, secret: &str, now_unix: u32, times: u32) -> Result<u32, String> {
    let stripe = provider("stripe").ok_or("no provider")?;
    let settings = Settings::new(stripe, Secrets::from_list([secret]));
    let context = Context { now_unix: now_unix.into(), key: None, verifier: &NoPublicKeys };
    let headers = Headers::from_iter([("content-type", "application/json"), ("stripe-signature", signature)]);
    let mut read = 0;
    for _ in 0..times {
        let request = Request { method: "POST", url: "", headers: &headers, body: black_box(body) };
        let verified = stripe.verify(&request, &settings, &context).map_err(|error| error.to_string())?;
        read += black_box(verified).events.len() as u32;
    }
    Ok(read)
}

fn bare(body: &[u8], secret: &str, now_unix: u32, times: u32) -> Result<u32, String> {
    let timestamp = now_unix.to_string();
    let mut read = 0;
    for _ in 0..times {
        let body = black_box(body);
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map_err(|error| error.to_string())?;
        [timestamp.as_bytes(), b".", body].iter().for_each(|part| mac.update(part));
        black_box(mac.finalize().into_bytes());
        let event: Event<'_> = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        read += u32::from(!black_box(event).id.is_empty());
    }
    Ok(read)
}
