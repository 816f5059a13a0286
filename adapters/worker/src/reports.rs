//! Tells the log and the rejections Worker of every request that did not pass: one line and one call each, after the answer.

use js_sys::{Promise, Uint8Array};
use serde_json::json;
use swarm_client::{Receipt, RefusalCode};
use swarm_cloudflare::js;
use swarm_domain::limits::REJECTED_BODY_BYTES_MAX;
use swarm_domain::rejected::RejectedRequest;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use worker_sys::Context;

use crate::answer::Refusal;
use crate::route::Route;
use crate::{Arrived, LOG, Taken};

#[wasm_bindgen]
extern "C" {
    type Rejections;
    #[wasm_bindgen(method, catch)]
    fn report(this: &Rejections, request: &str, body: &JsValue) -> Result<Promise, JsValue>;
}

/// Why a request did not pass.
pub struct Cause {
    /// As a word for machines.
    pub reason: &'static str,
    /// As a sentence, without secrets.
    pub detail: String,
    /// Whether the request is worth being kept.
    may_pass_later: bool,
}

impl Cause {
    /// The cause of an outcome; `None` if everything is recorded.
    pub fn of(outcome: &Result<Taken, Refusal>) -> Option<Self> {
        match outcome {
            Ok(taken) => taken.receipts.iter().find_map(Self::of_receipt),
            Err(refusal) => Some(Self::of_refusal(refusal)),
        }
    }

    fn of_receipt(receipt: &Receipt) -> Option<Self> {
        let Receipt::Refused(refused) = receipt else { return None };
        let reason = match refused.code {
            RefusalCode::Unavailable => "not_recorded",
            _ => "event_refused",
        };
        Some(Self { reason, detail: refused.message.clone(), may_pass_later: true })
    }

    fn of_refusal(refusal: &Refusal) -> Self {
        let (reason, detail, may_pass_later) = match refusal {
            Refusal::Rejected(rejection) => {
                (rejection.reason(), rejection.to_string(), rejection.may_pass_later())
            }
            Refusal::Unavailable => ("not_recorded", "the gateway could not take it".to_owned(), true),
            Refusal::TooLarge(max) => ("payload_too_large", ["more than ", &max.to_string()].concat(), false),
            Refusal::Unreadable => ("body_incomplete", "it did not arrive whole".to_owned(), false),
            Refusal::MethodNotAllowed(_) => {
                ("method_not_allowed", "not a method of the provider".to_owned(), false)
            }
            Refusal::NotFound => ("not_found", "no webhook is served there".to_owned(), false),
        };
        Self { reason, detail, may_pass_later }
    }
}

/// Reports an outcome, unless everything is recorded. An adapter without the binding `REJECTIONS` only writes its line.
pub fn report(
    env: &JsValue,
    context: &Context,
    route: &Route,
    arrived: &Arrived,
    outcome: &Result<Taken, Refusal>,
) {
    let Some(cause) = Cause::of(outcome) else { return };
    let provider = route.provider.name();
    let fields = json!({ "provider": provider, "tenantId": route.tenant, "reason": cause.reason, "detail": cause.detail });
    LOG.error("rejected a webhook", fields);
    let rejections = js::property(env, "REJECTIONS");
    if rejections.is_undefined() {
        return;
    }
    let is_kept = cause.may_pass_later && (1..=REJECTED_BODY_BYTES_MAX).contains(&arrived.body.len());
    let body = if is_kept { Uint8Array::from(arrived.body.as_slice()).into() } else { JsValue::UNDEFINED };
    let request = request(route, arrived, cause).to_json();
    match rejections.unchecked_into::<Rejections>().report(&request, &body) {
        // The runtime logs it if the call fails; nobody waits for it.
        Ok(reported) => drop(context.wait_until(&reported)),
        Err(error) => LOG.error("could not report a webhook", json!({ "error": js::error_message(&error) })),
    }
}

fn request(route: &Route, arrived: &Arrived, cause: Cause) -> RejectedRequest {
    let mut request = RejectedRequest::new(route.provider.name(), arrived.at);
    request.tenant_id.clone_from(&route.tenant);
    request.reason = cause.reason.to_owned();
    request.detail = cause.detail;
    request.method.clone_from(&arrived.method);
    request.url.clone_from(&arrived.url);
    let field = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    request.headers = arrived.headers.fields().map(field).collect();
    request
}
