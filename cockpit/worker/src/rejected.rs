//! `/api/v1/rejected` and `/api/v1/rejections`: requests that did not pass.

use js_sys::{Promise, Uint8Array};
use serde::{Deserialize, Serialize};
use swarm_cloudflare::{Bindings, R2Blobs, js, runtime};
use swarm_domain::limits::REVERIFY_CALL_MAX;
use swarm_domain::rejected::{
    self, AdapterError, Adapters, Counted, RejectedFilter, RejectedFilterInput, Reverified, Reverifier,
    Verdict,
};
use swarm_domain::time::Timestamp;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

use crate::answer::{Body, body};
use crate::call::Call;
use crate::query::Query;
use crate::refusal::Refusal;

const PARAMETERS: [&str; 7] = ["provider", "reason", "tenant", "since", "until", "limit", "cursor"];
/// How far back counts go if the operator does not say.
const COUNTED_MS_DEFAULT: i64 = 24 * 3_600_000;
/// How long an adapter may take to verify and publish one request.
const REVERIFY_MS: u64 = 10_000;

#[derive(Serialize)]
struct Counts {
    rejections: Vec<Counted>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    ids: Vec<String>,
}

#[derive(Serialize)]
struct Done {
    reverified: Vec<Reverified>,
}

/// How many did not pass, by provider and reason.
pub async fn count(call: &Call<'_>) -> Result<Body, Refusal> {
    let query = Query::parse(call.query, &["since", "until"])?;
    let moment = |name: &str| match query.get(name).map(Timestamp::parse_rfc3339) {
        Some(None) => Err(Refusal::Invalid(format!("`{name}` is not a moment like 2026-01-01T00:00:00Z"))),
        moment => Ok(moment.flatten()),
    };
    let until = moment("until")?.unwrap_or(call.now.plus_ms(1));
    let since = moment("since")?.unwrap_or(until.plus_ms(-COUNTED_MS_DEFAULT));
    body(&Counts { rejections: rejected::counts(&call.ledger, since, until).await? })
}

/// A page of kept requests, newest first.
pub async fn list(call: &Call<'_>, bindings: &Bindings) -> Result<Body, Refusal> {
    let query = Query::parse(call.query, &PARAMETERS)?;
    let filter = RejectedFilter::parse(RejectedFilterInput {
        provider: query.text("provider"),
        reason: query.text("reason"),
        tenant: query.text("tenant"),
        since: query.text("since"),
        until: query.text("until"),
    })?;
    body(&rejected::list(&bucket(bindings)?, &filter, query.limit()?, query.get("cursor")).await?)
}

/// One kept request.
pub async fn view(_: &Call<'_>, bindings: &Bindings, id: &str) -> Result<Body, Refusal> {
    body(&rejected::view(&bucket(bindings)?, id).await?)
}

/// Has requests verified again, one after the other. One that is gone is left out of the answer: somebody else was faster.
pub async fn reverify(call: &Call<'_>, bindings: &Bindings) -> Result<Body, Refusal> {
    let wanted: Wanted = call.body().await?;
    if !(1..=REVERIFY_CALL_MAX).contains(&wanted.ids.len()) {
        return Err(Refusal::Invalid(format!("`ids` must name 1 to {REVERIFY_CALL_MAX} requests")));
    }
    let (blobs, adapters) = (bucket(bindings)?, BoundAdapters(bindings));
    let reverifier = Reverifier { ledger: &call.ledger, blobs: &blobs, adapters: &adapters };
    let mut reverified = Vec::with_capacity(wanted.ids.len());
    for id in &wanted.ids {
        match reverifier.reverify(id, &call.operation(None)).await.map_err(Refusal::from) {
            Ok(one) => {
                if one.verdict.recorded {
                    call.log("reverify", id);
                }
                reverified.push(one);
            }
            Err(Refusal::NotFound(_)) if wanted.ids.len() > 1 => {}
            Err(refusal) => return Err(refusal),
        }
    }
    body(&Done { reverified })
}

fn bucket(bindings: &Bindings) -> Result<R2Blobs, Refusal> {
    Ok(bindings.bucket("REJECTED")?)
}

#[wasm_bindgen]
extern "C" {
    type Adapter;
    #[wasm_bindgen(method, catch)]
    fn reverify(this: &Adapter, request: &str, body: &Uint8Array) -> Result<Promise, JsValue>;
}

/// The adapters that are bound: each as `ADAPTER_{PROVIDER}`, or one for all as `ADAPTER`.
struct BoundAdapters<'a>(&'a Bindings);

impl Adapters for BoundAdapters<'_> {
    async fn reverify(&self, provider: &str, request: String, body: &[u8]) -> Result<Verdict, AdapterError> {
        let name = format!("ADAPTER_{}", provider.to_ascii_uppercase());
        let adapter = self.0.service(&name).or_else(|| self.0.service("ADAPTER"));
        let adapter = adapter.ok_or_else(|| {
            AdapterError(format!(
                "the adapter of {provider} is not bound; add {name} to the cockpit's config"
            ))
        })?;
        let call = adapter.unchecked_into::<Adapter>().reverify(&request, &Uint8Array::from(body));
        let failed = |error: JsValue| AdapterError(js::error_message(&error));
        let answer = runtime::within_ms(REVERIFY_MS, &call.map_err(failed)?).await;
        let answer = answer.ok_or_else(|| AdapterError("the adapter did not answer in time".to_owned()))?;
        let text = answer.map_err(failed)?.as_string().unwrap_or_default();
        serde_json::from_str(&text).map_err(|error| AdapterError(error.to_string()))
    }
}
