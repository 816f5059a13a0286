//! A ledger shard on D1 for a Worker in which many calls run at once: their batches share round trips.

use js_sys::Promise;
use swarm_domain::ports::{Outcome, Sql, SqlError, Statement};
use wasm_bindgen::prelude::wasm_bindgen;
use worker_sys::D1Database;

use crate::d1::{self, D1Shard};

#[wasm_bindgen(module = "/src/group_commit.mjs")]
extern "C" {
    #[derive(Clone, Debug)]
    #[wasm_bindgen(js_name = GroupCommit)]
    type Group;
    #[wasm_bindgen(constructor, js_class = "GroupCommit")]
    fn new(database: &D1Database) -> Group;
    #[wasm_bindgen(method)]
    fn batch(this: &Group, texts: &str, shape: &str) -> Promise;
}

/// One D1 database, to which the batches of concurrent calls go together. Whoever clones it shares its groups.
#[derive(Clone, Debug)]
pub struct GroupedShard {
    group: Group,
    alone: D1Shard,
}

impl GroupedShard {
    /// The shard of a binding.
    pub fn new(database: D1Database) -> Self {
        Self { group: Group::new(&database), alone: D1Shard::new(database) }
    }
}

impl Sql for GroupedShard {
    /// A group is one transaction, so it is refused as a whole. Each of its batches then runs again alone, and only the one
    /// that is at fault is refused.
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Outcome>, SqlError> {
        match d1::batch(&statements, |texts, shape| self.group.batch(texts, shape)).await {
            Err(SqlError::Constraint(_) | SqlError::Failed(_)) => self.alone.batch(statements).await,
            answer => answer,
        }
    }
}
