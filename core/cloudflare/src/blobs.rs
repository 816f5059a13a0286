//! Objects in R2.

use js_sys::{Array, Promise, Uint8Array};
use swarm_domain::ports::{BlobError, BlobKeeping, Blobs, Listed, Listing};
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

impl BlobKeeping for R2Blobs {
    /// The bytes go from R2 to R2 as a stream and never through this Worker's memory.
    async fn copy(&self, from: &str, to: &str) -> Result<bool, BlobError> {
        let object = settled(self.0.get(from.to_owned(), JsValue::UNDEFINED)).await?;
        if object.is_null() || object.is_undefined() {
            return Ok(false);
        }
        let body = js::property(&object, "body");
        settled(self.0.put(to.to_owned(), body, JsValue::UNDEFINED)).await.map(|_| true)
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Listing, BlobError> {
        let mut options = vec![("prefix", prefix.into()), ("limit", (limit as u32).into())];
        if !after.is_empty() {
            options.push(("startAfter", after.into()));
        }
        let list = settled(self.0.list(js::object(&options))).await?;
        let objects = js::property(&list, "objects").dyn_into::<Array>().unwrap_or_default();
        Ok(Listing {
            objects: objects.iter().filter_map(|object| listed(&object)).collect(),
            more: js::property(&list, "truncated").is_truthy(),
        })
    }

    async fn delete(&self, keys: &[String]) -> Result<(), BlobError> {
        let keys = keys.iter().map(|key| key.as_str().into()).collect();
        settled(self.0.delete_multiple(keys)).await.map(|_| ())
    }
}

fn listed(object: &JsValue) -> Option<Listed> {
    let bytes = js::property(object, "size").as_f64()? as u64;
    Some(Listed { key: js::text(object, "key")?, bytes })
}

async fn settled(promise: Result<Promise, JsValue>) -> Result<JsValue, BlobError> {
    let failed = |error: JsValue| BlobError(js::error_message(&error));
    JsFuture::from(promise.map_err(failed)?).await.map_err(failed)
}
