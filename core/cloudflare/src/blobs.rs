//! Objects in R2.

use js_sys::{Promise, Uint8Array};
use swarm_domain::ports::{BlobError, Blobs};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use worker_sys::R2Bucket;

use crate::js;

/// One R2 bucket.
#[derive(Clone, Debug)]
pub struct R2Blobs(R2Bucket);

impl R2Blobs {
    /// The bucket of a binding.
    pub fn new(bucket: R2Bucket) -> Self {
        Self(bucket)
    }
}

impl Blobs for R2Blobs {
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), BlobError> {
        // Create-once: R2 leaves an object that is already there alone and answers null.
        let absent = js::object(&[("etagDoesNotMatch", "*".into())]);
        let options = js::object(&[("onlyIf", absent)]);
        let value = Uint8Array::from(bytes.as_slice());
        settled(self.0.put(key.to_owned(), value.into(), options)).await.map(|_| ())
    }

    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, BlobError> {
        let object = settled(self.0.get(key.to_owned(), JsValue::UNDEFINED)).await?;
        if object.is_null() || object.is_undefined() {
            return Ok(None);
        }
        let read = js::property(&object, "arrayBuffer").dyn_into::<js_sys::Function>();
        let promise = read.and_then(|read| read.call0(&object)).map(JsCast::unchecked_into::<Promise>);
        Ok(Some(Uint8Array::new(&settled(promise).await?).to_vec()))
    }
}

async fn settled(promise: Result<Promise, JsValue>) -> Result<JsValue, BlobError> {
    let failed = |error: JsValue| BlobError(js::error_message(&error));
    JsFuture::from(promise.map_err(failed)?).await.map_err(failed)
}
