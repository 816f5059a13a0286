//! Seeing every change of every row, from outside.
//!
//! Temporary triggers hand old and new rows to a function of this crate, so nothing that the gateway does can go unseen and
//! nothing of the gateway is changed: no statement, no count of changes, no schema. What a transaction did counts once it
//! has committed.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::{Connection, Result};

/// A dispatch as it stands in its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchRow {
    /// `pending`, `failed`, …
    pub status: String,
    /// Its generation.
    pub replays: u32,
    /// Which run handles it.
    pub lease_holder: Option<String>,
    /// When somebody must look at it again.
    pub next_retry_at: Option<String>,
    /// Failed sends.
    pub attempts: i64,
    /// Leases since the last clean end.
    pub starts: i64,
}

/// An incident as it stands in its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncidentRow {
    /// `open`, `triaged`, …
    pub status: String,
    /// Which repetition of the dispatch it tells of.
    pub generation: u32,
    /// How often it failed again.
    pub retry_count: i64,
    /// When operators are to be told.
    pub alert_at: Option<String>,
    /// When they were.
    pub alerted_at: Option<String>,
}

/// One row that changed: none before means inserted, none after means deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A row of `event_dispatches`.
    Dispatch {
        /// Tenant, event, topic.
        key: [String; 3],
        /// The row before.
        old: Option<DispatchRow>,
        /// The row after.
        new: Option<DispatchRow>,
    },
    /// A row of `event_ledger`.
    Event {
        /// Tenant and event.
        key: [String; 2],
        /// The payload's hash, if the row is there now.
        stored: Option<String>,
    },
    /// A row of `dlq_incidents`.
    Incident {
        /// Tenant, event, topic; empty for a foreign message.
        key: [String; 3],
        /// The incident's id.
        id: String,
        /// The row before.
        old: Option<IncidentRow>,
        /// The row after.
        new: Option<IncidentRow>,
    },
    /// An effect of a handler.
    Effect {
        /// Tenant, event, topic.
        key: [String; 3],
        /// Of which repetition.
        generation: u32,
    },
    /// A line in the operators' log.
    Operation {
        /// The operation's own id.
        op_id: String,
        /// What was done.
        action: String,
        /// To which incident.
        incident_id: Option<String>,
    },
    /// An alert to a sink.
    Alert {
        /// Its id.
        id: String,
        /// The sink.
        sink: String,
        /// The body before, and when it was sent.
        old: Option<(String, Option<String>)>,
        /// The body after, and when it was sent.
        new: Option<(String, Option<String>)>,
    },
    /// A lane that changed hands.
    Lane {
        /// Its name.
        lane: String,
        /// Who held it, and until when.
        old: Option<(String, String)>,
        /// Who holds it now.
        new: Option<(String, String)>,
    },
}

/// The changes of one database, transaction by transaction.
#[derive(Clone, Default)]
pub struct Watch(Arc<Mutex<Vec<Change>>>);

const FUNCTION: &str = "simulation_saw";

/// Where handlers leave their effects. The check lets one be refused.
const EFFECTS: &str = "
    CREATE TABLE simulation_effects (
      tenant_id TEXT NOT NULL, event_id TEXT NOT NULL, topic TEXT NOT NULL, generation INTEGER NOT NULL,
      refused INTEGER NOT NULL CHECK (refused = 0)
    ) STRICT;";

const DISPATCH_COLUMNS: [&str; 6] =
    ["status", "replays", "lease_holder", "next_retry_at", "attempts", "starts"];
const INCIDENT_COLUMNS: [&str; 5] = ["status", "generation", "retry_count", "alert_at", "alerted_at"];

impl Watch {
    /// Watches a database from now on.
    pub fn install(connection: &Connection) -> Result<Self> {
        let watch = Self::default();
        let seen = Arc::clone(&watch.0);
        let flags = FunctionFlags::SQLITE_UTF8;
        connection.create_scalar_function(FUNCTION, -1, flags, move |context| {
            let change = read(context)?;
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(change);
            Ok(0)
        })?;
        connection.execute_batch(EFFECTS)?;
        connection.execute_batch(&triggers())?;
        Ok(watch)
    }

    /// What has changed since the last time it was asked.
    pub fn take(&self) -> Vec<Change> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The triggers on all tables that are watched.
fn triggers() -> String {
    [
        on("event_dispatches", &["tenant_id", "event_id", "topic"], &DISPATCH_COLUMNS),
        on("event_ledger", &["tenant_id", "event_id"], &["payload_hash"]),
        on("dlq_incidents", &["tenant_id", "event_id", "topic", "incident_id"], &INCIDENT_COLUMNS),
        on("simulation_effects", &["tenant_id", "event_id", "topic"], &["generation"]),
        on("ops_log", &["action", "incident_id"], &["op_id"]),
        on("lanes", &["lane"], &["holder", "until"]),
        on("alerts", &["alert_id", "sink"], &["body", "sent_at"]),
    ]
    .concat()
}

/// Three triggers on one table: each hands over the table, the key, whether there is a row before and one after, and both.
fn on(table: &str, key: &[&str], columns: &[&str]) -> String {
    let trigger = |event: &str, key_row: &str, old: bool, new: bool| {
        let row = |side: &str, there: bool| {
            let values = columns
                .iter()
                .map(|column| if there { format!("{side}.{column}") } else { "NULL".to_owned() });
            values.collect::<Vec<_>>().join(", ")
        };
        let key = key.iter().map(|column| format!("{key_row}.{column}")).collect::<Vec<_>>().join(", ");
        format!(
            "CREATE TEMP TRIGGER saw_{table}_{event} AFTER {event} ON main.{table} BEGIN
               SELECT {FUNCTION}('{table}', {old}, {new}, {key}, {}, {}); END;",
            row("OLD", old),
            row("NEW", new),
        )
    };
    [
        trigger("INSERT", "NEW", false, true),
        trigger("UPDATE", "NEW", true, true),
        trigger("DELETE", "OLD", true, false),
    ]
    .concat()
}

/// Where the key begins among the arguments.
const KEY_AT: usize = 3;

fn read(context: &Context<'_>) -> Result<Change> {
    let key = |at: usize| context.get::<Option<String>>(KEY_AT + at).map(Option::unwrap_or_default);
    let (old, new) = (context.get::<bool>(1)?, context.get::<bool>(2)?);
    let three = || Ok::<_, rusqlite::Error>([key(0)?, key(1)?, key(2)?]);
    match context.get::<String>(0)?.as_str() {
        "event_dispatches" => {
            let at = KEY_AT + 3;
            let row = |there: bool, at: usize| there.then(|| dispatch_row(context, at)).transpose();
            Ok(Change::Dispatch {
                key: three()?,
                old: row(old, at)?,
                new: row(new, at + DISPATCH_COLUMNS.len())?,
            })
        }
        "event_ledger" => {
            let stored = if new { Some(context.get(KEY_AT + 3)?) } else { None };
            Ok(Change::Event { key: [key(0)?, key(1)?], stored })
        }
        "dlq_incidents" => {
            let at = KEY_AT + 4;
            let row = |there: bool, at: usize| there.then(|| incident_row(context, at)).transpose();
            let new = row(new, at + INCIDENT_COLUMNS.len())?;
            Ok(Change::Incident { key: three()?, id: key(3)?, old: row(old, at)?, new })
        }
        "simulation_effects" => Ok(Change::Effect { key: three()?, generation: context.get(KEY_AT + 4)? }),
        "alerts" => {
            let pair = |there: bool, at: usize| -> Result<Option<(String, Option<String>)>> {
                there.then(|| Ok((context.get(at)?, context.get(at + 1)?))).transpose()
            };
            let (old, new) = (pair(old, KEY_AT + 2)?, pair(new, KEY_AT + 4)?);
            Ok(Change::Alert { id: key(0)?, sink: key(1)?, old, new })
        }
        "ops_log" => {
            let op_id = context.get::<Option<String>>(KEY_AT + 3)?.unwrap_or_default();
            Ok(Change::Operation { op_id, action: key(0)?, incident_id: context.get(KEY_AT + 1)? })
        }
        _ => {
            let pair = |there: bool, at: usize| -> Result<Option<(String, String)>> {
                there.then(|| Ok((context.get(at)?, context.get(at + 1)?))).transpose()
            };
            Ok(Change::Lane { lane: key(0)?, old: pair(old, KEY_AT + 1)?, new: pair(new, KEY_AT + 3)? })
        }
    }
}

fn dispatch_row(context: &Context<'_>, at: usize) -> Result<DispatchRow> {
    Ok(DispatchRow {
        status: context.get(at)?,
        replays: context.get(at + 1)?,
        lease_holder: context.get(at + 2)?,
        next_retry_at: context.get(at + 3)?,
        attempts: context.get(at + 4)?,
        starts: context.get(at + 5)?,
    })
}

fn incident_row(context: &Context<'_>, at: usize) -> Result<IncidentRow> {
    Ok(IncidentRow {
        status: context.get(at)?,
        generation: context.get(at + 1)?,
        retry_count: context.get(at + 2)?,
        alert_at: context.get(at + 3)?,
        alerted_at: context.get(at + 4)?,
    })
}
