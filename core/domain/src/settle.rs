//! Recording what became of sends. A settlement that gets lost costs one more send and nothing else, so senders may let
//! settlements wait for each other and write many in one statement.

use std::sync::LazyLock;

use serde::Serialize;

use crate::claim::Claimed;
use crate::history::{Happening, sql_failed};
use crate::ledger::{DispatchKey, Ledger, batch_with_retry, json_rows};
use crate::limits::{ERROR_BYTES_MAX, MARKS_PER_STATEMENT_MAX, SEND_ATTEMPTS_MAX, SEND_RETRY_BASE_MS};
use crate::ports::{SendError, Sql, SqlError, Statement};
use crate::states::{DispatchEvent, sql_state_after, sql_states_before};
use crate::time::Timestamp;

/// What became of one send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The dispatch.
    pub key: DispatchKey,
    /// The token of the run that claimed it; if another has claimed it since, this settlement no longer counts.
    pub claimed_by: String,
    /// Failed sends before this one.
    pub attempts: u32,
    /// The queue's answer.
    pub result: Result<(), SendError>,
    /// When the answer came.
    pub at: Timestamp,
}

impl Settlement {
    /// The settlement of a claimed dispatch.
    pub fn new(claimed: &Claimed, claimed_by: &str, result: Result<(), SendError>, at: Timestamp) -> Self {
        Self {
            key: claimed.message.key(),
            claimed_by: claimed_by.to_owned(),
            attempts: claimed.attempts,
            result,
            at,
        }
    }

    /// When a failed send is tried again.
    pub fn next_retry_at(&self) -> Timestamp {
        self.at.plus_ms(send_backoff_ms(self.attempts))
    }
}

/// How long to wait after a send failed that had failed `attempts` times before: 2, 4, 8, 16, 32 minutes, then as long.
pub fn send_backoff_ms(attempts: u32) -> i64 {
    SEND_RETRY_BASE_MS << attempts.min(SEND_ATTEMPTS_MAX - 1)
}

/// Marks dispatches that their queue has taken. The next look is the in-transit watchdog's.
pub static MARK_ENQUEUED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE event_dispatches SET status = {after}, next_retry_at = k.value ->> 'next_retry_at',
                claimed_by = NULL, updated_at = ?2
           FROM json_each(?1) k
          WHERE tenant_id = k.value ->> 'tenant_id' AND event_id = k.value ->> 'event_id'
            AND topic = k.value ->> 'topic' AND claimed_by = k.value ->> 'claimed_by' AND status IN ({before})",
        after = sql_state_after(DispatchEvent::Sent),
        before = sql_states_before(DispatchEvent::Sent),
    )
});

/// Marks dispatches that their queue did not take.
pub static MARK_FAILED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE event_dispatches SET status = {after}, next_retry_at = k.value ->> 'next_retry_at',
                attempts = attempts + 1, claimed_by = NULL, last_error = k.value ->> 'error', history = {history},
                updated_at = ?2
           FROM json_each(?1) k
          WHERE tenant_id = k.value ->> 'tenant_id' AND event_id = k.value ->> 'event_id'
            AND topic = k.value ->> 'topic' AND claimed_by = k.value ->> 'claimed_by' AND status IN ({before})",
        after = sql_state_after(DispatchEvent::SendFailed),
        history = sql_failed(Happening::SendFailed, "?2", "k.value ->> 'error'"),
        before = sql_states_before(DispatchEvent::SendFailed),
    )
});

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    key: &'a DispatchKey,
    claimed_by: &'a str,
    next_retry_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Writes settlements, one round trip per shard that they touch. Dispatches that a consumer has settled meanwhile cost
/// nothing: they no longer match. The first error is reported after every shard was tried.
pub async fn settle<S: Sql>(
    ledger: &Ledger<S>,
    settlements: Vec<Settlement>,
    now: Timestamp,
    in_transit_deadline_ms: i64,
) -> Result<(), SqlError> {
    let mut answer = Ok(());
    for (shard, group) in ledger.by_shard(settlements, |s| &s.key.tenant_id) {
        let written = settle_shard(ledger.shard(shard), &group, now, in_transit_deadline_ms).await;
        answer = answer.and(written);
    }
    answer
}

async fn settle_shard<S: Sql>(
    shard: &S,
    settlements: &[Settlement],
    now: Timestamp,
    in_transit_deadline_ms: i64,
) -> Result<(), SqlError> {
    let (mut enqueued, mut failed) = (Vec::new(), Vec::new());
    for settlement in settlements {
        let row = |next_retry_at, error| Row {
            key: &settlement.key,
            claimed_by: &settlement.claimed_by,
            next_retry_at,
            error,
        };
        match &settlement.result {
            Ok(()) => enqueued.push(row(settlement.at.plus_ms(in_transit_deadline_ms), None)),
            Err(error) => failed.push(row(settlement.next_retry_at(), Some(short_error(&error.to_string())))),
        }
    }
    let mut statements = Vec::new();
    for (sql, rows) in [(&MARK_ENQUEUED, enqueued), (&MARK_FAILED, failed)] {
        for rows in rows.chunks(MARKS_PER_STATEMENT_MAX) {
            statements.push(Statement::new(sql, vec![json_rows(rows)?.into(), now.into()]));
        }
    }
    batch_with_retry(shard, statements).await.map(|_| ())
}

/// An error's text, cut to what the ledger keeps.
pub fn short_error(error: &str) -> String {
    let mut end = error.len().min(ERROR_BYTES_MAX);
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    error.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_from_two_minutes_to_thirty_two() {
        let minutes: Vec<i64> = (0..7).map(|attempts| send_backoff_ms(attempts) / 60_000).collect();
        assert_eq!(minutes, [2, 4, 8, 16, 32, 32, 32]);
    }

    #[test]
    fn an_error_is_cut_between_characters() {
        assert_eq!(short_error("short"), "short");
        let long = "é".repeat(ERROR_BYTES_MAX);
        assert_eq!(short_error(&format!("a{long}")).len(), ERROR_BYTES_MAX - 1);
    }
}
