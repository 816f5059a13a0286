//! Recording what became of a page. Every statement compares each row with what was read and leaves it alone if it has
//! changed, so nothing here needs to be claimed first and everything may run twice.

use std::sync::LazyLock;

use serde::Serialize;

use super::due::Due;
use crate::history::{Happening, sql_failed, sql_sent};
use crate::incident::{Kind, Report, incident_id_of, report};
use crate::ledger::json_rows;
use crate::limits::REPORTS_PER_STATEMENT_MAX;
use crate::ports::{SqlError, Statement};
use crate::settle::send_backoff_ms;
use crate::states::{DispatchEvent, DispatchState, sql_state_after_all, sql_states_before_all};
use crate::time::Timestamp;

/// What a send makes of a due dispatch that its queue takes. One that was enqueued before got lost in transit.
const SENT: [DispatchEvent; 2] = [DispatchEvent::Claim, DispatchEvent::Sent];
/// And of one that its queue does not take.
const FAILED: [DispatchEvent; 2] = [DispatchEvent::Claim, DispatchEvent::SendFailed];
/// And of one that is given up.
const ABANDONED: [DispatchEvent; 2] = [DispatchEvent::Claim, DispatchEvent::Abandon];

/// Whether a row of `event_dispatches` is the one that was read, and unchanged.
const AS_READ: &str = "tenant_id = k.value ->> 'tenant_id' AND event_id = k.value ->> 'event_id'
            AND topic = k.value ->> 'topic' AND next_retry_at = k.value ->> 'since' AND replays = k.value ->> 'generation'";

/// Marks dispatches that their queue has taken. The next look is the in-transit watchdog's.
pub static MARK_SENT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE event_dispatches SET status = {after}, next_retry_at = ?3, claimed_by = NULL, history = {history},
                updated_at = ?2
           FROM json_each(?1) k
          WHERE {AS_READ} AND status IN ({before})",
        after = sql_state_after_all(&SENT),
        history = sql_sent("?2"),
        before = sql_states_before_all(&SENT),
    )
});

/// Marks dispatches that their queue did not take.
pub static MARK_FAILED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE event_dispatches SET status = {after}, next_retry_at = k.value ->> 'retry_at', attempts = attempts + 1,
                claimed_by = NULL, last_error = k.value ->> 'error', history = {history}, updated_at = ?2
           FROM json_each(?1) k
          WHERE {AS_READ} AND status IN ({before})",
        after = sql_state_after_all(&FAILED),
        history = sql_failed(Happening::SendFailed, "?2", "k.value ->> 'error'"),
        before = sql_states_before_all(&FAILED),
    )
});

/// Gives dispatches up, unless a consumer has begun to work on one: an earlier send has arrived after all.
pub static ABANDON: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE event_dispatches SET status = {after}, next_retry_at = NULL, attempts = attempts + (k.value ->> 'sends'),
                claimed_by = NULL, lease = NULL, lease_holder = NULL, last_error = k.value ->> 'error',
                history = {history}, updated_at = ?2
           FROM json_each(?1) k
          WHERE {AS_READ} AND status IN ({before}) AND (lease IS NULL OR lease <= ?2)",
        after = sql_state_after_all(&ABANDONED),
        history = sql_failed(Happening::Abandoned, "?2", "k.value ->> 'error'"),
        before = sql_states_before_all(&ABANDONED),
    )
});

/// Lets dead letters rest whose incident is written.
pub static MARK_ARCHIVED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE event_dispatches SET next_retry_at = NULL, updated_at = ?2
           FROM json_each(?1) k
          WHERE {AS_READ} AND status = '{dead_lettered}'",
        dead_lettered = DispatchState::DeadLettered.name(),
    )
});

/// What became of a due dispatch.
#[derive(Debug)]
pub(super) enum Fate {
    /// Its queue took it.
    Sent,
    /// Its queue did not take it, and it is tried again.
    Failed(String),
    /// It is given up, after so many failed sends of this run.
    Abandoned { error: String, sends: u32 },
    /// It gets the incident that its letter did not bring.
    Archived,
}

/// The key of a row as the ledger has it. A topic that could have no queue must not keep the row from being reported.
#[derive(Clone, Copy, Serialize)]
struct Key<'a> {
    tenant_id: &'a str,
    event_id: &'a str,
    topic: &'a str,
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    key: Key<'a>,
    since: &'a str,
    generation: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sends: Option<u32>,
}

/// Rows of a topic, sorted by the statement that settles them.
#[derive(Default)]
struct Sorted<'a> {
    sent: Vec<Row<'a>>,
    failed: Vec<Row<'a>>,
    abandoned: Vec<Row<'a>>,
    archived: Vec<Row<'a>>,
    reports: Vec<Report<Key<'a>>>,
}

/// The statements that settle dispatches of a topic; none for none. They need no answer.
pub(super) fn settle(
    topic: &str,
    source_queue: &str,
    settled: &[(Due, Fate)],
    now: Timestamp,
    in_transit_deadline_ms: i64,
) -> Result<Vec<Statement>, SqlError> {
    let mut sorted = Sorted::default();
    settled.iter().for_each(|(due, fate)| sorted.add(topic, source_queue, due, fate, now));
    let mut statements = Vec::new();
    let mut update = |sql: &'static str, rows: &[Row<'_>], more: Option<Timestamp>| {
        if !rows.is_empty() {
            let values = [json_rows(rows)?.into(), now.into()].into_iter().chain(more.map(Into::into));
            statements.push(Statement::new(sql, values.collect()));
        }
        Ok::<_, SqlError>(())
    };
    update(&MARK_SENT, &sorted.sent, Some(now.plus_ms(in_transit_deadline_ms)))?;
    update(&MARK_FAILED, &sorted.failed, None)?;
    update(&ABANDON, &sorted.abandoned, None)?;
    update(&MARK_ARCHIVED, &sorted.archived, None)?;
    for reports in sorted.reports.chunks(REPORTS_PER_STATEMENT_MAX) {
        statements.push(report(reports, now)?);
    }
    Ok(statements)
}

impl<'a> Sorted<'a> {
    fn add(&mut self, topic: &'a str, source_queue: &str, due: &'a Due, fate: &'a Fate, now: Timestamp) {
        let key = Key { tenant_id: &due.tenant_id, event_id: &due.event_id, topic };
        let row =
            Row { key, since: &due.since, generation: due.replays, retry_at: None, error: None, sends: None };
        let report = |kind, error: Option<&str>| Report {
            key,
            incident_id: incident_id_of(key.tenant_id, key.event_id, topic),
            kind,
            source_queue: source_queue.to_owned(),
            generation: due.replays,
            error: error.map(str::to_owned),
            stack: None,
        };
        match fate {
            Fate::Sent => self.sent.push(row),
            Fate::Failed(error) => {
                let retry_at = now.plus_ms(send_backoff_ms(due.attempts));
                self.failed.push(Row { retry_at: Some(retry_at), error: Some(error), ..row });
            }
            Fate::Abandoned { error, sends } => {
                self.abandoned.push(Row { error: Some(error), sends: Some(*sends), ..row });
                self.reports.push(report(Kind::Abandoned, Some(error)));
            }
            Fate::Archived => {
                self.archived.push(row);
                self.reports.push(report(Kind::DeadLetter, None));
            }
        }
    }
}
