//! Which incidents or events an operator means. Fields that are given must all hold.

use serde::{Deserialize, Serialize, Serializer};

use super::error::OperationError;
use super::state::IncidentState;
use crate::event::{is_event_id, is_event_type, is_tenant_id};
use crate::limits::{ERROR_BYTES_MAX, SHOWN_VALUE_CHARS_MAX};
use crate::time::Timestamp;
use crate::topic::Topic;

/// A filter as it is written in the API and kept with a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilterInput {
    /// The tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The event's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The event's type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    /// A part of the error's text, whatever the case of its letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// From this moment on, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Before this moment, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The states of the incident.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Vec<String>>,
}

/// A filter that makes sense.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The tenant.
    pub tenant: Option<String>,
    /// The topic.
    pub topic: Option<Topic>,
    /// The event's id.
    pub event_id: Option<String>,
    /// The event's type.
    pub event_type: Option<String>,
    /// A part of the error's text, whatever the case of its ASCII letters.
    pub error: Option<String>,
    /// Not created before this moment.
    pub since: Option<Timestamp>,
    /// Created before this moment.
    pub until: Option<Timestamp>,
    /// The states of the incident, each once; never an empty list.
    pub status: Option<Vec<IncidentState>>,
}

impl Filter {
    /// Checks a filter field by field.
    pub fn parse(input: FilterInput) -> Result<Self, OperationError> {
        let filter = Self {
            tenant: checked("tenant", input.tenant, is_tenant_id, "is not the id of a tenant")?,
            topic: input.topic.map(|topic| parse_topic("topic", topic)).transpose()?,
            event_id: checked("event", input.event, is_event_id, "is not the id of an event")?,
            event_type: checked("type", input.r#type, is_event_type, "is not a type of events")?,
            error: checked("error", input.error, is_error_text, "is empty or too long")?,
            since: moment("since", input.since)?,
            until: moment("until", input.until)?,
            status: input.status.map(states).transpose()?,
        };
        match (filter.since, filter.until) {
            (Some(since), Some(until)) if since >= until => {
                Err(OperationError::invalid("since", "is not before `until`, so nothing can match"))
            }
            _ => Ok(filter),
        }
    }

    /// Whether it says nothing at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The filter as it is written.
    pub fn to_input(&self) -> FilterInput {
        let status = |states: &Vec<IncidentState>| states.iter().map(|s| s.name().to_owned()).collect();
        FilterInput {
            tenant: self.tenant.clone(),
            topic: self.topic.as_ref().map(Topic::to_string),
            event: self.event_id.clone(),
            r#type: self.event_type.clone(),
            error: self.error.clone(),
            since: self.since.map(Timestamp::rfc3339),
            until: self.until.map(Timestamp::rfc3339),
            status: self.status.as_ref().map(status),
        }
    }
}

impl Serialize for Filter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_input().serialize(serializer)
    }
}

/// Reads a topic that an operator names.
pub(crate) fn parse_topic(field: &'static str, topic: String) -> Result<Topic, OperationError> {
    Topic::try_from(topic).map_err(|error| OperationError::invalid(field, format!("names no topic: {error}")))
}

/// The value of a field, if it keeps to the field's rule.
pub(crate) fn checked(
    field: &'static str,
    value: Option<String>,
    rule: fn(&str) -> bool,
    why: &str,
) -> Result<Option<String>, OperationError> {
    match value {
        Some(text) if !rule(&text) => Err(refused(field, &text, why)),
        value => Ok(value),
    }
}

fn is_error_text(text: &str) -> bool {
    !text.is_empty() && text.len() <= ERROR_BYTES_MAX
}

/// The moment that a field gives.
pub(crate) fn moment(
    field: &'static str,
    value: Option<String>,
) -> Result<Option<Timestamp>, OperationError> {
    let Some(text) = value else { return Ok(None) };
    match Timestamp::parse_rfc3339(&text) {
        Some(moment) => Ok(Some(moment)),
        None => Err(refused(field, &text, "is not a moment like 2026-01-01T00:00:00Z")),
    }
}

fn states(names: Vec<String>) -> Result<Vec<IncidentState>, OperationError> {
    let mut states = Vec::new();
    for name in names {
        let state = IncidentState::named(&name).ok_or_else(|| {
            let all = IncidentState::ALL.map(IncidentState::name).join(", ");
            refused("status", &name, &format!("is none of {all}"))
        })?;
        if !states.contains(&state) {
            states.push(state);
        }
    }
    if states.is_empty() {
        return Err(OperationError::invalid("status", "is empty, so nothing can match"));
    }
    Ok(states)
}

fn refused(field: &'static str, value: &str, why: &str) -> OperationError {
    let shown: String = value.chars().take(SHOWN_VALUE_CHARS_MAX).collect();
    OperationError::invalid(field, format!("{why}: '{shown}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Filter, String> {
        let input: FilterInput = serde_json::from_str(json).map_err(|e| e.to_string())?;
        Filter::parse(input).map_err(|e| e.to_string())
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (json, part) in [
            (r#"{"tenant":""}"#, "`tenant` is not the id of a tenant: ''"),
            (r#"{"tenant":"a b"}"#, "`tenant`"),
            (r#"{"topic":"Billing"}"#, "`topic` names no topic"),
            (r#"{"type":"paid"}"#, "`type` is not a type"),
            (r#"{"error":""}"#, "`error` is empty"),
            (r#"{"since":"yesterday"}"#, "`since` is not a moment like 2026-01-01T00:00:00Z: 'yesterday'"),
            (r#"{"until":"2026-01-01"}"#, "`until`"),
            (
                r#"{"since":"2026-01-02T00:00:00Z","until":"2026-01-01T00:00:00Z"}"#,
                "`since` is not before `until`",
            ),
            (
                r#"{"since":"2026-01-01T00:00:00Z","until":"2026-01-01T01:00:00+01:00"}"#,
                "`since` is not before `until`",
            ),
            (r#"{"status":[]}"#, "`status` is empty"),
            (r#"{"status":["open","closed"]}"#, "`status` is none of open, triaged"),
            (r#"{"tenants":"acme"}"#, "unknown field `tenants`"),
        ] {
            let error = parse(json).unwrap_err();
            assert!(error.contains(part), "{json}: {error}");
        }
    }

    #[test]
    fn a_filter_is_written_as_it_was_read() {
        for (json, expected) in [
            ("{}", "{}"),
            (r#"{"status":["open","open","triaged"]}"#, r#"{"status":["open","triaged"]}"#),
            (
                r#"{"tenant":"acme","topic":"billing.events","type":"a.b","error":"50% off_","since":"2026-01-01T01:00:00+01:00"}"#,
                r#"{"tenant":"acme","topic":"billing.events","type":"a.b","error":"50% off_","since":"2026-01-01T00:00:00.000Z"}"#,
            ),
        ] {
            let filter = parse(json).unwrap();
            assert_eq!(serde_json::to_string(&filter).unwrap(), expected);
            assert_eq!(filter.is_empty(), json == "{}");
        }
    }
}
