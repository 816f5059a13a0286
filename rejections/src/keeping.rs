//! Some requests are kept with their bodies, as many a minute as `REJECTED_PER_MINUTE` says. With 0 none is.

use std::cell::RefCell;

use js_sys::Uint8Array;
use serde_json::json;
use swarm_cloudflare::clock::random_token;
use swarm_cloudflare::{Bindings, Misconfigured};
use swarm_domain::limits::{REJECTED_BODY_BYTES_MAX, REJECTED_PER_MINUTE_DEFAULT};
use swarm_domain::ports::Blobs;
use swarm_domain::rejected::{Quota, RejectedRequest};
use swarm_domain::time::Timestamp;
use wasm_bindgen::{JsCast, JsValue};

use crate::LOG;

thread_local! {
    static QUOTA: RefCell<Option<Quota>> = const { RefCell::new(None) };
}

/// Keeps a request, if it brings a body and there is room.
pub async fn keep(
    bindings: &Bindings,
    request: &RejectedRequest,
    body: &JsValue,
    now: Timestamp,
) -> Result<(), Misconfigured> {
    let Some(body) = body.dyn_ref::<Uint8Array>() else { return Ok(()) };
    let per_minute = per_minute(bindings)?;
    let admitted = body.length() as usize <= REJECTED_BODY_BYTES_MAX
        && QUOTA.with_borrow_mut(|quota| {
            quota.get_or_insert_with(|| Quota::new(per_minute)).admit(&request.provider, now)
        });
    if !admitted {
        return Ok(());
    }
    let key = request.key(&random_token()).object_key();
    let object = request.object(&body.to_vec());
    if let Err(error) = bindings.bucket("REJECTED")?.put(&key, object).await {
        let fields = json!({ "provider": request.provider, "error": error.to_string() });
        LOG.error("a rejected request could not be kept", fields);
    }
    Ok(())
}

/// 0 is a number here: it switches keeping off.
fn per_minute(bindings: &Bindings) -> Result<u32, Misconfigured> {
    match bindings.var("REJECTED_PER_MINUTE").as_deref() {
        Some("0") => Ok(0),
        _ => {
            let number = bindings.number_var("REJECTED_PER_MINUTE", REJECTED_PER_MINUTE_DEFAULT)?;
            Ok(u32::try_from(number).unwrap_or(u32::MAX))
        }
    }
}
