//! R2.

use std::rc::Rc;

use swarm_domain::ports::{BlobError, BlobKeeping, Blobs, Listing};
use swarm_native::block_on;

use crate::checkers::archive;
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
        let world = &self.0.world;
        if archive::is_part(key) && world.is_mutant("delete before the archive has it") {
            return Ok(());
        }
        if archive::is_part(key) {
            // The only large objects there are, so their upload takes its time.
            world.executor.sleep_ms(world.dice.between(50, 3_000)).await;
        }
        let put = || {
            let answer = block_on(world.blobs.put(key, bytes.clone()));
            archive::stored(world, &self.0, key);
            answer
        };
        self.call(format!("R2 put {key}"), put).await
    }

    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, BlobError> {
        self.call(format!("R2 get {key}"), || block_on(self.0.world.blobs.get(key))).await
    }
}

impl BlobKeeping for SimBlobs {
    async fn copy(&self, from: &str, to: &str) -> Result<bool, BlobError> {
        self.call(format!("R2 copy {from} to {to}"), || block_on(self.0.world.blobs.copy(from, to))).await
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Listing, BlobError> {
        let list = || block_on(self.0.world.blobs.list(prefix, after, limit));
        self.call(format!("R2 list {prefix} after {after}"), list).await
    }

    async fn delete(&self, keys: &[String]) -> Result<(), BlobError> {
        let what = format!("R2 delete {} objects", keys.len());
        self.call(what, || block_on(self.0.world.blobs.delete(keys))).await
    }
}
