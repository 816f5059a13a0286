//! R2 in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use swarm_domain::ports::{BlobError, BlobKeeping, Blobs, Listed, Listing};

/// R2 refuses longer keys.
const KEY_BYTES_MAX: usize = 1_024;
/// R2 deletes no more objects in one call.
const KEYS_MAX: usize = 1_000;

/// Objects by key.
#[derive(Clone, Debug, Default)]
pub struct MemoryBlobs(Rc<RefCell<BTreeMap<String, Vec<u8>>>>);

impl MemoryBlobs {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// The keys of all objects, in order.
    pub fn keys(&self) -> Vec<String> {
        self.0.borrow().keys().cloned().collect()
    }
}

impl Blobs for MemoryBlobs {
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), BlobError> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(BlobError(format!("a key must have 1 to {KEY_BYTES_MAX} bytes, not {}", key.len())));
        }
        self.0.borrow_mut().entry(key.to_owned()).or_insert(bytes);
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, BlobError> {
        Ok(self.0.borrow().get(key).cloned())
    }
}

impl BlobKeeping for MemoryBlobs {
    async fn copy(&self, from: &str, to: &str) -> Result<bool, BlobError> {
        let Some(bytes) = self.get(from).await? else { return Ok(false) };
        self.0.borrow_mut().insert(to.to_owned(), bytes);
        Ok(true)
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Listing, BlobError> {
        let objects = self.0.borrow();
        let mut after = objects.iter().filter(|(key, _)| key.starts_with(prefix) && key.as_str() > after);
        let page = after.by_ref().take(limit);
        let listed = page.map(|(key, bytes)| Listed { key: key.clone(), bytes: bytes.len() as u64 });
        Ok(Listing { objects: listed.collect(), more: after.next().is_some() })
    }

    async fn delete(&self, keys: &[String]) -> Result<(), BlobError> {
        if keys.len() > KEYS_MAX {
            return Err(BlobError(format!("{} keys; the limit is {KEYS_MAX}", keys.len())));
        }
        self.0.borrow_mut().retain(|key, _| !keys.contains(key));
        Ok(())
    }
}
