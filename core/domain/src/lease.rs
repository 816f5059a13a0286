//! Consumers owning dispatches: who has a message's lease handles it, and nobody else does until the lease ends.
//!
//! A batch of messages costs two round trips per shard, however many there are: one takes the leases and tells what else is
//! there, one records all outcomes. What a handler writes to D1 commits in that second one, together with `delivered`, and
//! only if the lease still holds; that makes its effects happen exactly once.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::ledger::{DispatchKey, batch_with_retry, json_rows, outcome};
use crate::limits::HANDLE_LEASE_MS;
use crate::ports::{Sql, SqlError, Statement};
use crate::settle::short_error;
use crate::states::{DispatchEvent, DispatchState, sql_states_before};
use crate::time::Timestamp;

/// Takes the leases of those messages that may be handled now.
pub static TAKE_LEASES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE event_dispatches SET lease = ?2, lease_holder = ?3, updated_at = ?4
          WHERE (tenant_id, event_id, topic) IN (
                SELECT value ->> 'tenant_id', value ->> 'event_id', value ->> 'topic' FROM json_each(?1))
            AND status IN ({before}) AND (lease IS NULL OR lease <= ?4)",
        before = sql_states_before(DispatchEvent::Deliver),
    )
});

/// Reads how the messages of a batch stand.
pub const READ_LEASES: &str = "
    SELECT d.tenant_id, d.event_id, d.topic, d.status, d.lease_holder
      FROM json_each(?1) k
      JOIN event_dispatches d ON d.tenant_id = k.value ->> 'tenant_id' AND d.event_id = k.value ->> 'event_id'
                             AND d.topic = k.value ->> 'topic'";

/// Marks messages as delivered. A lease that was lost makes the row violate its CHECK on `status`, which undoes the whole
/// batch and with it every effect in it.
pub static MARK_DELIVERED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE event_dispatches
            SET status = CASE WHEN lease_holder = ?2 AND status IN ({before}) THEN '{delivered}' ELSE 'lease_lost' END,
                next_retry_at = NULL, claimed_by = NULL, lease = NULL, lease_holder = NULL, last_error = NULL,
                updated_at = ?3
          WHERE (tenant_id, event_id, topic) IN (
                SELECT value ->> 'tenant_id', value ->> 'event_id', value ->> 'topic' FROM json_each(?1))",
        before = sql_states_before(DispatchEvent::Deliver),
        delivered = DispatchState::Delivered.name(),
    )
});

/// Gives leases back, with the error that the next attempt should know of.
pub const RELEASE_LEASES: &str = "
    UPDATE event_dispatches SET lease = NULL, lease_holder = NULL, last_error = k.value ->> 'error', updated_at = ?3
      FROM json_each(?1) k
     WHERE tenant_id = k.value ->> 'tenant_id' AND event_id = k.value ->> 'event_id' AND topic = k.value ->> 'topic'
       AND lease_holder = ?2";

/// Marks messages that have gone to the dead-letter queue.
pub static MARK_DEAD_LETTERED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE event_dispatches
            SET status = '{dead_lettered}', next_retry_at = NULL, claimed_by = NULL, lease = NULL, lease_holder = NULL,
                last_error = k.value ->> 'error', updated_at = ?3
           FROM json_each(?1) k
          WHERE tenant_id = k.value ->> 'tenant_id' AND event_id = k.value ->> 'event_id'
            AND topic = k.value ->> 'topic' AND lease_holder = ?2 AND status IN ({before})",
        before = sql_states_before(DispatchEvent::DeadLetter),
        dead_lettered = DispatchState::DeadLettered.name(),
    )
});

/// What the ledger says about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// This run owns it and must handle it.
    Ours,
    /// Another run owns it.
    Held,
    /// It is delivered, or at rest in another way: there is nothing to do.
    AtRest,
    /// The ledger does not know it.
    Unknown,
}

/// What became of a message that this run owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Handled. The statements commit together with it.
    Delivered(Vec<Statement>),
    /// To be handled again; why it failed this time.
    Released(String),
    /// Sent to the dead-letter queue; why.
    DeadLettered(String),
}

#[derive(Deserialize)]
struct LeaseRow {
    #[serde(flatten)]
    key: DispatchKey,
    status: DispatchState,
    lease_holder: Option<String>,
}

#[derive(Serialize)]
struct Failed<'a> {
    #[serde(flatten)]
    key: &'a DispatchKey,
    error: String,
}

/// Takes the leases of a batch, all of one shard. `holder` is random and unique to the run. One round trip.
pub async fn take<S: Sql>(
    shard: &S,
    keys: &[DispatchKey],
    holder: &str,
    now: Timestamp,
) -> Result<HashMap<DispatchKey, Lease>, SqlError> {
    let rows = json_rows(keys)?;
    let until = now.plus_ms(HANDLE_LEASE_MS);
    let take =
        Statement::new(&TAKE_LEASES, vec![rows.as_str().into(), until.into(), holder.into(), now.into()]);
    let read = Statement::new(READ_LEASES, vec![rows.into()]);
    let outcomes = batch_with_retry(shard, vec![take, read]).await?;
    let mut leases: HashMap<_, _> = keys.iter().map(|key| (key.clone(), Lease::Unknown)).collect();
    for row in outcome(&outcomes, 1)?.decode::<LeaseRow>()? {
        let lease = if row.status.after(DispatchEvent::Deliver).is_err() {
            Lease::AtRest
        } else if row.lease_holder.as_deref() == Some(holder) {
            Lease::Ours
        } else {
            Lease::Held
        };
        leases.insert(row.key, lease);
    }
    Ok(leases)
}

/// Records the outcomes of a batch, all of one shard, in one transaction and one round trip.
///
/// [`SqlError::Constraint`] means that this batch recorded nothing: a lease was lost, an effect was refused, or an earlier run
/// of the same batch had committed and its answer got lost. The caller takes the leases again to tell these apart.
pub async fn settle<S: Sql>(
    shard: &S,
    outcomes: Vec<(DispatchKey, Outcome)>,
    holder: &str,
    now: Timestamp,
) -> Result<(), SqlError> {
    let mut statements = Vec::new();
    let (mut delivered, mut released, mut dead) = (Vec::new(), Vec::new(), Vec::new());
    for (key, outcome) in &outcomes {
        match outcome {
            Outcome::Delivered(effects) => {
                statements.extend(effects.iter().cloned());
                delivered.push(key);
            }
            Outcome::Released(error) => released.push(Failed { key, error: short_error(error) }),
            Outcome::DeadLettered(error) => dead.push(Failed { key, error: short_error(error) }),
        }
    }
    if !delivered.is_empty() {
        statements.push(update(&MARK_DELIVERED, &delivered, holder, now)?);
    }
    if !released.is_empty() {
        statements.push(update(RELEASE_LEASES, &released, holder, now)?);
    }
    if !dead.is_empty() {
        statements.push(update(&MARK_DEAD_LETTERED, &dead, holder, now)?);
    }
    if statements.is_empty() {
        return Ok(());
    }
    batch_with_retry(shard, statements).await.map(|_| ())
}

fn update<T: Serialize>(
    sql: &'static str,
    rows: &[T],
    holder: &str,
    now: Timestamp,
) -> Result<Statement, SqlError> {
    Ok(Statement::new(sql, vec![json_rows(rows)?.into(), holder.into(), now.into()]))
}
