//! Consumers owning dispatches: who has a message's lease handles it, and nobody else does until the lease ends.
//!
//! A batch of messages costs two round trips per shard, however many there are: one takes the leases and tells what else is
//! there, one records all outcomes. What a handler writes to D1 commits in that second one, together with `delivered`, and
//! only if the lease still holds; that makes its effects happen exactly once.
//!
//! Each lease counts as a start of the handler until the run tells how it ended. A dispatch whose handler was started and
//! never came to an end may be what ended the run, so it is not taken in a batch again, only alone, and after a few starts
//! not at all.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::history::{Happening, sql_failed, sql_released};
use crate::incident::{IncidentEvent, incident_id, sql_incident_after, sql_incident_before};
use crate::ledger::{DispatchKey, batch_with_retry, json_rows, outcome};
use crate::limits::{ARCHIVE_DEADLINE_MS, HANDLE_LEASE_MS, HANDLE_STARTS_MAX};
use crate::ports::{Sql, SqlError, Statement};
use crate::settle::short_error;
use crate::states::{DispatchEvent, DispatchState, sql_state_after, sql_states_before};
use crate::time::Timestamp;

/// A dispatch as its messages know it. When an operator has it repeated, it begins a new generation, and messages of earlier
/// ones are void.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Generation {
    /// The dispatch.
    #[serde(flatten)]
    pub key: DispatchKey,
    /// How often it had been repeated when the message was sent.
    pub replay: u32,
}

/// Takes the leases of those messages that may be handled now and whose handler was not started too often before.
pub static TAKE_LEASES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE event_dispatches SET lease = ?2, lease_holder = ?3, starts = starts + 1, updated_at = ?4
           FROM json_each(?1) k
          WHERE tenant_id = k.value ->> 'tenant_id' AND event_id = k.value ->> 'event_id'
            AND topic = k.value ->> 'topic' AND replays = k.value ->> 'replay'
            AND status IN ({before}) AND (lease IS NULL OR lease <= ?4) AND starts <= ?5",
        before = sql_states_before(DispatchEvent::Deliver),
    )
});

/// Reads how the messages of a batch stand.
pub const READ_LEASES: &str = "
    SELECT d.tenant_id, d.event_id, d.topic, d.status, d.lease, d.lease_holder, d.starts, d.replays
      FROM json_each(?1) k
      JOIN event_dispatches d ON d.tenant_id = k.value ->> 'tenant_id' AND d.event_id = k.value ->> 'event_id'
                             AND d.topic = k.value ->> 'topic'";

/// Marks messages as delivered. A lease that was lost makes the row violate its CHECK on `status`, which undoes the whole
/// batch and with it every effect in it.
pub static MARK_DELIVERED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE event_dispatches
            SET status = CASE WHEN lease_holder = ?2 AND status IN ({before}) THEN '{delivered}' ELSE 'lease_lost' END,
                next_retry_at = NULL, claimed_by = NULL, lease = NULL, lease_holder = NULL, starts = 0,
                last_error = NULL, updated_at = ?3
          WHERE (tenant_id, event_id, topic) IN (
                SELECT value ->> 'tenant_id', value ->> 'event_id', value ->> 'topic' FROM json_each(?1))",
        before = sql_states_before(DispatchEvent::Deliver),
        delivered = DispatchState::Delivered.name(),
    )
});

/// Closes the incidents of repeated dispatches that were delivered after all. Only a message that is a repetition has one to
/// close, so ordinary events do not pay for this. The plus keeps SQLite from walking through all open incidents instead.
pub static RESOLVE_INCIDENTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE dlq_incidents SET status = {after}, alert_at = NULL, resolved_at = ?2, updated_at = ?2
          WHERE incident_id IN (SELECT value FROM json_each(?1)) AND +status IN ({before})",
        after = sql_incident_after(IncidentEvent::Deliver),
        before = sql_incident_before(IncidentEvent::Deliver),
    )
});

/// Gives leases back, with the error that the next attempt should know of. A handler that has ended is no longer suspect; one
/// that was not even started leaves the count as it was.
pub static RELEASE_LEASES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE event_dispatches SET lease = NULL, lease_holder = NULL, last_error = k.value ->> 'error', updated_at = ?3,
                starts = iif(k.value ->> 'handled', 0, starts - 1), history = {history}
           FROM json_each(?1) k
          WHERE tenant_id = k.value ->> 'tenant_id' AND event_id = k.value ->> 'event_id'
            AND topic = k.value ->> 'topic' AND lease_holder = ?2",
        history = sql_released("k.value ->> 'handled'", "?3", "k.value ->> 'error'"),
    )
});

/// Marks messages that have gone to the dead-letter queue: those that this run owned, and those that nobody may own any more.
/// Each is due again in case its letter gets lost; the archiver takes that back.
pub static MARK_DEAD_LETTERED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE event_dispatches
            SET status = {after}, next_retry_at = ?4, claimed_by = NULL, lease = NULL, lease_holder = NULL, starts = 0,
                last_error = k.value ->> 'error', history = {history}, updated_at = ?3
           FROM json_each(?1) k
          WHERE tenant_id = k.value ->> 'tenant_id' AND event_id = k.value ->> 'event_id'
            AND topic = k.value ->> 'topic' AND replays = k.value ->> 'replay' AND status IN ({before})
            AND (lease_holder = ?2 OR (lease <= ?3 AND starts >= {HANDLE_STARTS_MAX}))",
        after = sql_state_after(DispatchEvent::DeadLetter),
        history = sql_failed(Happening::DeadLettered, "?3", "k.value ->> 'error'"),
        before = sql_states_before(DispatchEvent::DeadLetter),
    )
});

/// Makes dispatches due as soon as the leases that others have on them end.
pub const LET_GO: &str = "
    UPDATE event_dispatches SET next_retry_at = lease, updated_at = ?2
      FROM json_each(?1) k
     WHERE tenant_id = k.value ->> 'tenant_id' AND event_id = k.value ->> 'event_id' AND topic = k.value ->> 'topic'
       AND replays = k.value ->> 'replay' AND lease > ?2 AND next_retry_at > lease";

/// What the ledger says about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// This run owns it and must handle it.
    Ours,
    /// Another run owns it.
    Held,
    /// Nobody owns it, but a run that did never said how it ended. It may be taken with [`take_unfinished`], alone.
    Unfinished,
    /// As before, and too often. It must be given up.
    Stalled,
    /// It is delivered, or at rest in another way, or repeated since: there is nothing to do.
    AtRest,
    /// The ledger does not know it.
    Unknown,
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Handled. The statements commit together with it.
    Delivered(Vec<Statement>),
    /// To be handled again; why it failed this time.
    Released {
        /// The error.
        error: String,
        /// Whether the handler was started, and so came to an end.
        handled: bool,
    },
    /// Sent to the dead-letter queue; why.
    DeadLettered(String),
    /// Held by another run until the queue's last attempt, and now dropped. The dispatch is due when that run's lease ends:
    /// if the run came to an end, there is nothing left to send by then, and if it never did, the sweeper sends once more
    /// and that message finds the dispatch unfinished or stalled. So the message is not lost with the run, and since every
    /// lease counts as a start, it cannot go round more often than [`HANDLE_STARTS_MAX`] times.
    LetGo,
}

#[derive(Deserialize)]
struct LeaseRow {
    #[serde(flatten)]
    key: DispatchKey,
    status: DispatchState,
    lease: Option<Timestamp>,
    lease_holder: Option<String>,
    starts: u32,
    replays: u32,
}

impl LeaseRow {
    /// What the row means for a message of generation `replay`, now that this run has taken what it could.
    fn lease(&self, replay: u32, holder: &str, now: Timestamp) -> Lease {
        let runs = self.lease.is_some_and(|until| until > now);
        if replay < self.replays || self.status.after(DispatchEvent::Deliver).is_err() {
            Lease::AtRest
        } else if self.lease_holder.as_deref() == Some(holder) {
            Lease::Ours
        } else if runs || self.starts == 0 {
            Lease::Held
        } else if self.starts < HANDLE_STARTS_MAX {
            Lease::Unfinished
        } else {
            Lease::Stalled
        }
    }
}

#[derive(Serialize)]
struct Failed<'a> {
    #[serde(flatten)]
    generation: &'a Generation,
    error: String,
    handled: bool,
}

/// Takes the leases of a batch, all of one shard, but for messages that may have ended a run before. `holder` is random and
/// unique to the run. One round trip.
pub async fn take<S: Sql>(
    shard: &S,
    messages: &[Generation],
    holder: &str,
    now: Timestamp,
) -> Result<HashMap<Generation, Lease>, SqlError> {
    take_started(shard, messages, holder, now, 0).await
}

/// Takes the lease of a message that [`take`] has called unfinished. A run does so when it has nothing else to lose, because
/// the handler may end it. One round trip.
pub async fn take_unfinished<S: Sql>(
    shard: &S,
    message: &Generation,
    holder: &str,
    now: Timestamp,
) -> Result<Lease, SqlError> {
    let leases =
        take_started(shard, std::slice::from_ref(message), holder, now, HANDLE_STARTS_MAX - 1).await?;
    Ok(leases.get(message).copied().unwrap_or(Lease::Unknown))
}

async fn take_started<S: Sql>(
    shard: &S,
    messages: &[Generation],
    holder: &str,
    now: Timestamp,
    starts_max: u32,
) -> Result<HashMap<Generation, Lease>, SqlError> {
    let rows = json_rows(messages)?;
    let until = now.plus_ms(HANDLE_LEASE_MS);
    let values =
        vec![rows.as_str().into(), until.into(), holder.into(), now.into(), i64::from(starts_max).into()];
    let statements =
        vec![Statement::new(&TAKE_LEASES, values), Statement::new(READ_LEASES, vec![rows.into()])];
    let outcomes = batch_with_retry(shard, statements).await?;
    let rows = outcome(&outcomes, 1)?.decode::<LeaseRow>()?;
    let rows: HashMap<_, _> = rows.iter().map(|row| (&row.key, row)).collect();
    let lease = |message: &Generation| {
        rows.get(&message.key).map_or(Lease::Unknown, |row| row.lease(message.replay, holder, now))
    };
    Ok(messages.iter().map(|message| (message.clone(), lease(message))).collect())
}

/// Records the outcomes of a batch, all of one shard, in one transaction and one round trip.
///
/// [`SqlError::Constraint`] means that this batch recorded nothing: a lease was lost, an effect was refused, or an earlier run
/// of the same batch had committed and its answer got lost. The caller takes the leases again to tell these apart.
pub async fn settle<S: Sql>(
    shard: &S,
    outcomes: Vec<(Generation, Outcome)>,
    holder: &str,
    now: Timestamp,
) -> Result<(), SqlError> {
    let mut statements = Vec::new();
    let (mut delivered, mut released, mut dead, mut let_go) = <(Vec<_>, Vec<_>, Vec<_>, Vec<_>)>::default();
    for (generation, outcome) in &outcomes {
        match outcome {
            Outcome::Delivered(effects) => {
                statements.extend(effects.iter().cloned());
                delivered.push(generation);
            }
            Outcome::Released { error, handled } => {
                released.push(Failed { generation, error: short_error(error), handled: *handled });
            }
            Outcome::DeadLettered(error) => {
                dead.push(Failed { generation, error: short_error(error), handled: true });
            }
            Outcome::LetGo => let_go.push(generation),
        }
    }
    if !delivered.is_empty() {
        let values = vec![json_rows(&delivered)?.into(), holder.into(), now.into()];
        statements.push(Statement::new(&MARK_DELIVERED, values));
        statements.extend(resolve(&delivered, now)?);
    }
    if !released.is_empty() {
        let values = vec![json_rows(&released)?.into(), holder.into(), now.into()];
        statements.push(Statement::new(&RELEASE_LEASES, values));
    }
    if !dead.is_empty() {
        let archived_by = now.plus_ms(ARCHIVE_DEADLINE_MS);
        let values = vec![json_rows(&dead)?.into(), holder.into(), now.into(), archived_by.into()];
        statements.push(Statement::new(&MARK_DEAD_LETTERED, values));
    }
    if !let_go.is_empty() {
        statements.push(Statement::new(LET_GO, vec![json_rows(&let_go)?.into(), now.into()]));
    }
    if statements.is_empty() {
        return Ok(());
    }
    batch_with_retry(shard, statements).await.map(|_| ())
}

/// The statement that closes incidents, if any of these messages is a repetition.
fn resolve(delivered: &[&Generation], now: Timestamp) -> Result<Option<Statement>, SqlError> {
    let repeated = delivered.iter().filter(|generation| generation.replay > 0);
    let incidents: Vec<String> = repeated.map(|generation| incident_id(&generation.key)).collect();
    if incidents.is_empty() {
        return Ok(None);
    }
    Ok(Some(Statement::new(&RESOLVE_INCIDENTS, vec![json_rows(&incidents)?.into(), now.into()])))
}
