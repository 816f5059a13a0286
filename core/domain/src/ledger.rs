//! The ledger: one D1 database or several, divided by tenant, and the keys by which its statements name dispatches.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ports::{Outcome, Sql, SqlError, Statement};
use crate::topic::Topic;

/// The shards of the ledger, in order. A tenant lives in one of them.
#[derive(Clone, Debug)]
pub struct Ledger<S> {
    first: S,
    rest: Vec<S>,
}

impl<S: Sql> Ledger<S> {
    /// A ledger of at least one shard. The order is part of the data: it decides where a tenant lives.
    pub fn new(first: S, rest: Vec<S>) -> Self {
        Self { first, rest }
    }

    /// All shards, with their numbers.
    pub fn shards(&self) -> impl Iterator<Item = (usize, &S)> {
        std::iter::once(&self.first).chain(&self.rest).enumerate()
    }

    /// The shard with this number.
    pub fn shard(&self, number: usize) -> &S {
        number.checked_sub(1).and_then(|at| self.rest.get(at)).unwrap_or(&self.first)
    }

    /// The number of the shard in which a tenant lives: `fnv1a32(tenantId) mod N`.
    pub fn shard_of(&self, tenant_id: &str) -> usize {
        let shards = self.rest.len() as u32 + 1;
        (fnv1a32(tenant_id) % shards) as usize
    }

    /// Items by the shard of their tenant, each group in the order it came.
    pub fn by_shard<T>(
        &self,
        items: impl IntoIterator<Item = T>,
        tenant_id: impl Fn(&T) -> &str,
    ) -> BTreeMap<usize, Vec<T>> {
        let mut groups: BTreeMap<usize, Vec<T>> = BTreeMap::new();
        for item in items {
            groups.entry(self.shard_of(tenant_id(&item))).or_default().push(item);
        }
        groups
    }
}

/// Runs a batch, and once more if the database did not answer. Every batch of this gateway is harmless when it runs twice,
/// and most broken connections heal at once.
pub async fn batch_with_retry<S: Sql>(
    shard: &S,
    statements: Vec<Statement>,
) -> Result<Vec<Outcome>, SqlError> {
    match shard.batch(statements.clone()).await {
        Err(SqlError::Unavailable(_)) => shard.batch(statements).await,
        answer => answer,
    }
}

/// The binding of shard `number` of `shards`: `LEDGER`, or `LEDGER_00`, `LEDGER_01`, …
pub fn shard_binding(number: usize, shards: usize) -> String {
    if shards == 1 { "LEDGER".to_owned() } else { format!("LEDGER_{number:02}") }
}

fn fnv1a32(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// What identifies a dispatch: one event on its way to one topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DispatchKey {
    /// The tenant.
    pub tenant_id: String,
    /// The event's id, unique within the tenant.
    pub event_id: String,
    /// The topic.
    pub topic: Topic,
}

/// Items as a JSON array, which a statement unfolds with `json_each`: one parameter, however many rows.
pub fn json_rows<T: Serialize>(rows: &[T]) -> Result<String, SqlError> {
    serde_json::to_string(rows).map_err(|e| SqlError::Failed(e.to_string()))
}

/// The rows of the outcome at `index`. A database that answers fewer outcomes than it was given statements is broken.
pub fn outcome(outcomes: &[Outcome], index: usize) -> Result<&Outcome, SqlError> {
    outcomes.get(index).ok_or_else(|| SqlError::Failed("the database left out an answer".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoSql;
    impl Sql for NoSql {
        async fn batch(&self, _: Vec<Statement>) -> Result<Vec<Outcome>, SqlError> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn tenants_are_divided_by_fnv1a() {
        assert_eq!(fnv1a32(""), 0x811c_9dc5);
        assert_eq!(fnv1a32("foobar"), 0xbf9c_f968);
        let ledger = Ledger::new(NoSql, vec![NoSql, NoSql]);
        let groups = ledger.by_shard((0..300).map(|n| format!("tenant-{n}")), |tenant| tenant);
        assert_eq!(groups.len(), 3);
        assert!(groups.values().all(|tenants| tenants.len() > 60));
        assert_eq!(ledger.shards().count(), 3);
    }

    #[test]
    fn one_shard_is_called_ledger() {
        assert_eq!(shard_binding(0, 1), "LEDGER");
        assert_eq!(shard_binding(7, 12), "LEDGER_07");
    }
}
