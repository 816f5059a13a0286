//! Finding what is due: which topics, and page by page which of their dispatches, with all that their messages need.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::claim::Claimed;
use crate::lane::Lane;
use crate::limits::{SWEEP_PAGE_BYTES_MAX, SWEEP_PAGE_MAX};
use crate::packing::is_too_large;
use crate::ports::{Outcome, SqlError, Statement};
use crate::states::{DispatchEvent, DispatchState};
use crate::time::Timestamp;
use crate::topic::Topic;

/// Finds the topics that have something due. It jumps from topic to topic, so it never looks at more rows than twice their
/// number.
pub const FIND_TOPICS: &str = "
    WITH RECURSIVE topics (topic) AS (
      SELECT min(topic) FROM event_dispatches WHERE next_retry_at IS NOT NULL
       UNION ALL
      SELECT (SELECT min(d.topic) FROM event_dispatches d WHERE d.next_retry_at IS NOT NULL AND d.topic > topics.topic)
        FROM topics WHERE topic IS NOT NULL)
    SELECT topic FROM topics
     WHERE EXISTS (SELECT 1 FROM event_dispatches d WHERE d.topic = topics.topic AND d.next_retry_at <= ?1)";

/// Reads a page of what is due in a topic, oldest first, unless its lane is another's. What a consumer is working on is left
/// out. Rows beyond the bound in bytes come without their event, and belong to the next page.
pub const READ_DUE: &str = "
    WITH due AS (
      SELECT d.tenant_id, d.event_id, d.topic, d.status, d.attempts, d.max_attempts, d.next_retry_at, d.replays,
             d.replay_of, l.seq, coalesce(octet_length(l.payload), 0) AS bytes
        FROM event_dispatches d
        JOIN event_ledger l ON l.tenant_id = d.tenant_id AND l.event_id = d.event_id
       WHERE d.topic = ?1 AND d.next_retry_at <= ?2
         AND (d.next_retry_at, d.tenant_id, d.event_id) > (?3, ?4, ?5)
         AND (d.lease IS NULL OR d.lease <= ?2)
         AND EXISTS (SELECT 1 FROM lanes WHERE lane = ?6 AND holder = ?7)
       ORDER BY d.next_retry_at, d.tenant_id, d.event_id LIMIT ?8),
    sized AS (SELECT due.*, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before FROM due)
    SELECT sized.tenant_id, sized.event_id, sized.topic, sized.status, sized.attempts, sized.max_attempts,
           sized.next_retry_at, sized.replays, sized.replay_of, l.type, l.occurred_at, l.source, l.subject, l.context,
           l.payload, l.payload_ref
      FROM sized
      LEFT JOIN event_ledger l ON l.seq = sized.seq AND sized.bytes_before < ?9";

/// A dispatch as it was read. It is settled only if it is still like this.
#[derive(Debug)]
pub(super) struct Due {
    pub tenant_id: String,
    pub event_id: String,
    /// When it became due, as the ledger has it.
    pub since: String,
    pub replays: u32,
    pub attempts: u32,
    pub max_attempts: u32,
}

/// What a due dispatch needs.
#[derive(Debug)]
pub(super) enum Need {
    /// Its message to be sent to its topic.
    Send(Topic, String),
    /// To be given up: it makes no message, or none that a queue would take.
    Abandon(String),
    /// An incident: its consumer gave up, and its letter has not been archived.
    Archive,
}

/// The place in the order of what is due up to which a run has looked. A run looks at nothing twice, so rows that cannot be
/// moved hold it up once and not for ever.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    since: String,
    tenant_id: String,
    event_id: String,
}

/// One page of what is due.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub rows: Vec<(Due, Need)>,
    /// Rows that are not even a dispatch.
    pub errors: Vec<SqlError>,
    /// Where the page ends, unless it is empty.
    pub end: Option<Cursor>,
    /// Whether another page follows.
    pub more: bool,
}

#[derive(Deserialize)]
struct Row {
    tenant_id: String,
    event_id: String,
    status: DispatchState,
    attempts: u32,
    max_attempts: u32,
    next_retry_at: String,
    replays: u32,
    /// None on a row that belongs to the next page.
    r#type: Option<IgnoredAny>,
}

/// The statement that reads the page after `after`.
pub(super) fn read_page(topic: &str, lane: &Lane, now: Timestamp, after: &Cursor) -> Statement {
    let values = vec![
        topic.into(),
        now.into(),
        after.since.as_str().into(),
        after.tenant_id.as_str().into(),
        after.event_id.as_str().into(),
        lane.name.as_str().into(),
        lane.holder.as_str().into(),
        (SWEEP_PAGE_MAX as i64).into(),
        (SWEEP_PAGE_BYTES_MAX as i64).into(),
    ];
    Statement::new(READ_DUE, values)
}

impl Page {
    pub(super) fn read(outcome: &Outcome) -> Result<Self, SqlError> {
        let rows: Vec<Box<RawValue>> = outcome.decode()?;
        let mut page = Self { more: rows.len() == SWEEP_PAGE_MAX, ..Self::default() };
        for raw in rows {
            let row: Row = match serde_json::from_str(raw.get()) {
                Ok(row) => row,
                Err(error) => {
                    page.errors.push(SqlError::Failed(format!("a due dispatch cannot be read: {error}")));
                    continue;
                }
            };
            if row.r#type.is_none() {
                page.more = true;
                break;
            }
            page.end = Some(Cursor {
                since: row.next_retry_at.clone(),
                tenant_id: row.tenant_id.clone(),
                event_id: row.event_id.clone(),
            });
            let need = need(row.status, raw.get());
            page.rows.push((row.due(), need));
        }
        Ok(page)
    }
}

impl Row {
    fn due(self) -> Due {
        Due {
            tenant_id: self.tenant_id,
            event_id: self.event_id,
            since: self.next_retry_at,
            replays: self.replays,
            attempts: self.attempts,
            max_attempts: self.max_attempts,
        }
    }
}

fn need(status: DispatchState, row: &str) -> Need {
    // The only state at rest that is ever due.
    if status == DispatchState::DeadLettered {
        return Need::Archive;
    }
    if let Err(illegal) = status.after_all(&[DispatchEvent::Claim, DispatchEvent::Sent]) {
        return Need::Abandon(illegal.to_string());
    }
    let message = Claimed::read(row).map(|claimed| claimed.message);
    match message.and_then(|message| Ok((message.encode()?, message.topic))) {
        Ok((text, _)) if is_too_large(&text) => {
            Need::Abandon(format!("a message of {} bytes is more than a queue takes", text.len()))
        }
        Ok((text, topic)) => Need::Send(topic, text),
        Err(error) => Need::Abandon(format!("the stored event makes no message: {error}")),
    }
}
