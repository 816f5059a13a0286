//! R2.

use std::rc::Rc;

use swarm_domain::ports::{BlobError, Blobs};
use swarm_native::block_on;

use crate::faults::Port;
use crate::process::Process;

/// The blob store in the hands of one run.
pub struct SimBlobs(pub Rc<Process>);

impl SimBlobs {
    async fn call<T>(
        &self,
        what: String,
        effect: impl FnMut() -> Result<T, BlobError>,
    ) -> Result<T, BlobError> {
        let answer = self.0.call(Port::Blobs, &what, effect).await;
        answer.unwrap_or_else(|problem| Err(BlobError(problem.to_owned())))
    }
}

impl Blobs for SimBlobs {
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), BlobError> {
        self.call(format!("R2 put {key}"), || block_on(self.0.world.blobs.put(key, bytes.clone()))).await
    }

    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, BlobError> {
        self.call(format!("R2 get {key}"), || block_on(self.0.world.blobs.get(key))).await
    }
}
