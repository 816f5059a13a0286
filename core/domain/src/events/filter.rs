//! Which events an operator means. Fields that are given must all hold.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::event::{is_event_id, is_event_type, is_tenant_id};
use crate::incident::{OperationError, checked, moment, parse_topic};
use crate::ledger::json_rows;
use crate::ports::{SqlError, Value};
use crate::states::{EventState, sql_event_state};
use crate::time::Timestamp;
use crate::topic::Topic;

/// What a filter says beyond the index that is walked: ?1 type, ?2 a topic that the event goes to, ?3 states of the event, ?4
/// and ?5 times. The plus keeps SQLite from choosing the index by the last two.
pub(super) static FILTER: LazyLock<String> = LazyLock::new(|| {
    format!(
        "(?1 IS NULL OR l.type = ?1)
       AND (?2 IS NULL OR EXISTS (SELECT 1 FROM event_dispatches d
                                   WHERE d.tenant_id = l.tenant_id AND d.event_id = l.event_id AND d.topic = ?2))
       AND (?3 IS NULL OR {state} IN (SELECT value FROM json_each(?3)))
       AND +l.created_at >= ?4 AND +l.created_at < ?5",
        state = sql_event_state("l"),
    )
});

/// A filter as it is written in the API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventFilterInput {
    /// The tenant.
    pub tenant: Option<String>,
    /// The event's id.
    pub id: Option<String>,
    /// The event's type.
    pub r#type: Option<String>,
    /// A topic that it goes to.
    pub topic: Option<String>,
    /// Where it stands as a whole.
    pub status: Option<Vec<String>>,
    /// Recorded from this moment on, RFC 3339.
    pub since: Option<String>,
    /// Recorded before this moment, RFC 3339.
    pub until: Option<String>,
}

/// A filter that makes sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    pub(super) tenant: Option<String>,
    pub(super) id: Option<String>,
    event_type: Option<String>,
    topic: Option<Topic>,
    status: Option<Vec<EventState>>,
    pub(super) since: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
}

impl EventFilter {
    /// Checks a filter field by field.
    pub fn parse(input: EventFilterInput) -> Result<Self, OperationError> {
        let filter = Self {
            tenant: checked("tenant", input.tenant, is_tenant_id, "is not the id of a tenant")?,
            id: checked("id", input.id, is_event_id, "is not the id of an event")?,
            event_type: checked("type", input.r#type, is_event_type, "is not a type of events")?,
            topic: input.topic.map(|topic| parse_topic("topic", topic)).transpose()?,
            status: input.status.map(states).transpose()?,
            since: moment("since", input.since)?,
            until: moment("until", input.until)?,
        };
        match (filter.since, filter.until) {
            (Some(since), Some(until)) if since >= until => {
                Err(OperationError::invalid("since", "is not before `until`, so nothing can match"))
            }
            _ => Ok(filter),
        }
    }

    /// The values of [`FILTER`].
    pub(super) fn values(&self) -> Result<Vec<Value>, SqlError> {
        let status = self.status.as_deref().map(json_rows).transpose()?;
        Ok(vec![
            self.event_type.as_deref().into(),
            self.topic.as_ref().map(Topic::as_str).into(),
            status.into(),
            self.since.unwrap_or(Timestamp::from_unix_ms(i64::MIN)).into(),
            self.until.unwrap_or(Timestamp::from_unix_ms(i64::MAX)).into(),
        ])
    }
}

fn states(names: Vec<String>) -> Result<Vec<EventState>, OperationError> {
    let state = |name: String| {
        EventState::named(&name).ok_or_else(|| {
            let all = EventState::ALL.map(EventState::name).join(", ");
            OperationError::invalid("status", format!("is none of {all}"))
        })
    };
    let states = names.into_iter().map(state).collect::<Result<Vec<_>, _>>()?;
    if states.is_empty() {
        return Err(OperationError::invalid("status", "is empty, so nothing can match"));
    }
    Ok(states)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (json, part) in [
            (r#"{"tenant":"a b"}"#, "`tenant` is not the id of a tenant: 'a b'"),
            (r#"{"id":""}"#, "`id` is not the id of an event"),
            (r#"{"type":"paid"}"#, "`type` is not a type"),
            (r#"{"topic":"Billing"}"#, "`topic` names no topic"),
            (
                r#"{"status":["open"]}"#,
                "`status` is none of received, processing, completed, dlq, undelivered",
            ),
            (r#"{"status":[]}"#, "`status` is empty"),
            (r#"{"since":"yesterday"}"#, "`since` is not a moment"),
            (r#"{"since":"2026-01-02T00:00:00Z","until":"2026-01-01T00:00:00Z"}"#, "not before `until`"),
        ] {
            let input: EventFilterInput = serde_json::from_str(json).unwrap();
            let error = EventFilter::parse(input).unwrap_err().to_string();
            assert!(error.contains(part), "{json}: {error}");
        }
    }
}
