//! R2 in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use swarm_domain::ports::{BlobError, Blobs};

/// R2 refuses longer keys.
const KEY_BYTES_MAX: usize = 1_024;

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
