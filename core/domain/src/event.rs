//! The event: what a producer hands in, checked field by field, and what the ledger and the queues then carry.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::limits::{
    EVENT_ID_CHARS_MAX, EVENT_TYPE_CHARS_MAX, FIELD_BYTES_MAX, SHOWN_VALUE_CHARS_MAX, TENANT_ID_CHARS_MAX,
};
use crate::payload::{InvalidPayload, Payload};
use crate::time::Timestamp;

/// An immutable fact, identified by (`tenant_id`, `id`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformEvent {
    /// Who and what; small, and copied freely.
    pub envelope: Envelope,
    /// The fact itself.
    pub payload: Payload,
}

/// Everything about an event but its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// 1 to 200 visible ASCII characters, unique within the tenant.
    pub id: String,
    /// `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`.
    pub tenant_id: String,
    /// At least two lower-case dotted words: `stripe.invoice.paid`.
    pub event_type: String,
    /// When the fact happened, as its producer says.
    pub timestamp: Timestamp,
    /// The system that the fact comes from, e.g. `stripe`.
    pub source: Option<String>,
    /// What the fact is about; facts about one subject have an order.
    pub subject: Option<String>,
    /// What surrounds the fact; carried, never interpreted.
    pub context: Context,
}

/// Optional texts that travel with an event from its producer to its consumers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Context {
    /// The version of the payload's shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Groups everything that one request set off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The event, command or request that caused this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<String>,
    /// Who did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// W3C trace context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// An event as it arrives: the envelope as JSON text, and the payload as JSON text beside it, so that the payload is never
/// parsed into a value on its way.
#[derive(Clone, Debug)]
pub struct EventInput {
    /// A JSON object with every field but the payload.
    pub envelope: String,
    /// The payload's text; `None` if the event has none.
    pub payload: Option<String>,
}

/// Why an event is refused: the field, the rule it breaks, and its value in short.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct InvalidEvent {
    /// The field as the producer spells it; `event` for the whole.
    pub field: String,
    /// The rule, and the value that breaks it.
    pub problem: String,
    /// Whether the only trouble is the payload's size.
    pub too_large: bool,
}

impl InvalidEvent {
    /// An event refused for `field`, whose `problem` completes the sentence "`field` …".
    pub fn new(field: &str, problem: impl Into<String>) -> Self {
        Self { field: field.to_owned(), problem: problem.into(), too_large: false }
    }
}

const FIELDS: &str = "id, tenantId, type, timestamp, payload, payloadJson, source, subject, version, correlationId, \
                      causationId, actor, traceparent";

impl PlatformEvent {
    /// Checks an event. `tenant_of_caller` stands in for a missing `tenantId`.
    pub fn parse(input: EventInput, tenant_of_caller: Option<&str>) -> Result<Self, InvalidEvent> {
        let mut fields = Fields::parse(&input.envelope)?;
        let tenant_id = match (fields.take("tenantId")?, tenant_of_caller) {
            (None, Some(tenant)) => tenant.to_owned(),
            (given, _) => required("tenantId", given)?,
        };
        let envelope = Envelope {
            id: check(
                "id",
                fields.required("id")?,
                is_event_id,
                "must be 1 to 200 visible ASCII characters",
            )?,
            tenant_id: check("tenantId", tenant_id, is_tenant_id, TENANT_RULE)?,
            event_type: check("type", fields.required("type")?, is_event_type, TYPE_RULE)?,
            timestamp: timestamp(fields.required("timestamp")?)?,
            source: fields.optional("source")?,
            subject: fields.optional("subject")?,
            context: Context {
                version: fields.optional("version")?,
                correlation_id: fields.optional("correlationId")?,
                causation_id: fields.optional("causationId")?,
                actor: fields.optional("actor")?,
                traceparent: fields.optional("traceparent")?,
            },
        };
        fields.refuse_rest()?;
        let text = input.payload.ok_or_else(|| InvalidEvent::new("payload", "is missing"))?;
        Ok(Self { envelope, payload: Payload::new(text).map_err(invalid_payload)? })
    }
}

const TENANT_RULE: &str = "must be a letter or digit, then up to 63 letters, digits, '.', '_' or '-'";
const TYPE_RULE: &str = "must be two or more lower-case words joined by dots, such as billing.invoice.paid";

/// Whether `id` may name an event.
pub fn is_event_id(id: &str) -> bool {
    (1..=EVENT_ID_CHARS_MAX).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic())
}

/// Whether `id` may name a tenant.
pub fn is_tenant_id(id: &str) -> bool {
    id.len() <= TENANT_ID_CHARS_MAX
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

/// Whether `text` may be an event's type.
pub fn is_event_type(text: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty()
            && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
    };
    text.len() <= EVENT_TYPE_CHARS_MAX && text.contains('.') && text.split('.').all(word)
}

fn timestamp(text: String) -> Result<Timestamp, InvalidEvent> {
    Timestamp::parse_rfc3339(&text).ok_or_else(|| {
        InvalidEvent::new(
            "timestamp",
            format!("must be RFC 3339, such as 2026-01-31T12:00:00Z, not {}", shown(&text)),
        )
    })
}

fn invalid_payload(error: InvalidPayload) -> InvalidEvent {
    let too_large = matches!(error, InvalidPayload::TooLarge(_));
    InvalidEvent { too_large, ..InvalidEvent::new("payload", error.to_string()) }
}

fn check(field: &str, value: String, rule: fn(&str) -> bool, text: &str) -> Result<String, InvalidEvent> {
    if rule(&value) {
        Ok(value)
    } else {
        Err(InvalidEvent::new(field, format!("{text}, not {}", shown(&value))))
    }
}

fn required(field: &str, value: Option<String>) -> Result<String, InvalidEvent> {
    value.ok_or_else(|| InvalidEvent::new(field, "is missing"))
}

/// A refused value as an error message repeats it: quoted, escaped, and cut.
fn shown(value: &str) -> String {
    let short: String = value.chars().take(SHOWN_VALUE_CHARS_MAX).collect();
    let dots = if short.len() < value.len() { "…" } else { "" };
    format!("{short:?}{dots}")
}

/// The fields of an envelope that nobody has asked for yet.
struct Fields(Map<String, Value>);

impl Fields {
    fn parse(envelope: &str) -> Result<Self, InvalidEvent> {
        match serde_json::from_str(envelope) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            _ => Err(InvalidEvent::new("event", "must be an object")),
        }
    }

    fn take(&mut self, field: &str) -> Result<Option<String>, InvalidEvent> {
        match self.0.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => {
                Err(InvalidEvent::new(field, format!("must be a string, not {}", shown(&other.to_string()))))
            }
        }
    }

    fn required(&mut self, field: &str) -> Result<String, InvalidEvent> {
        required(field, self.take(field)?)
    }

    fn optional(&mut self, field: &str) -> Result<Option<String>, InvalidEvent> {
        let plain = |text: &str| {
            !text.is_empty() && text.len() <= FIELD_BYTES_MAX && !text.contains(|c: char| c.is_control())
        };
        let rule = "must be 1 to 512 bytes of text without control characters";
        self.take(field)?.map(|value| check(field, value, plain, rule)).transpose()
    }

    fn refuse_rest(self) -> Result<(), InvalidEvent> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(field) => {
                let field: String = field.chars().take(SHOWN_VALUE_CHARS_MAX).collect();
                Err(InvalidEvent::new(&field, format!("is not a field of an event ({FIELDS})")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(envelope: &str) -> Result<PlatformEvent, InvalidEvent> {
        PlatformEvent::parse(
            EventInput { envelope: envelope.to_owned(), payload: Some("{}".to_owned()) },
            None,
        )
    }

    const PLAIN: &str = r#"{"id":"evt_1","tenantId":"acme","type":"billing.invoice.paid","timestamp":"2026-01-01T01:00:00+01:00"}"#;

    #[test]
    fn takes_an_event_and_puts_its_time_into_utc() {
        let event = event(PLAIN).unwrap();
        assert_eq!(event.envelope.timestamp.rfc3339(), "2026-01-01T00:00:00.000Z");
        assert_eq!(event.envelope.context, Context::default());
    }

    #[test]
    fn an_error_names_the_field_the_rule_and_the_value_in_short() {
        let long = "x".repeat(300);
        for (from, to, field, part) in [
            (r#""evt_1""#, r#""""#, "id", "visible ASCII characters, not \"\""),
            (r#""evt_1""#, &format!("{long:?}"), "id", "…"),
            (r#""evt_1""#, "7", "id", "must be a string, not \"7\""),
            (r#""evt_1""#, "null", "id", "is missing"),
            (r#""acme""#, r#""-acme""#, "tenantId", "letter or digit"),
            (r#""billing.invoice.paid""#, r#""Paid""#, "type", "lower-case words"),
            (r#""billing.invoice.paid""#, r#""a..b""#, "type", "lower-case words"),
            ("2026-01-01T01", "yesterday", "timestamp", "RFC 3339"),
            (r#""id""#, r#""extra":1,"id""#, "extra", "is not a field of an event"),
            (r#""id""#, r#""actor":"a\u0000b","id""#, "actor", "control characters"),
        ] {
            let error = event(&PLAIN.replacen(from, to, 1)).unwrap_err();
            assert_eq!(error.field, field, "{to}");
            assert!(error.problem.contains(part), "{to}: {error}");
            assert!(error.problem.chars().count() < 250, "{to}: {error}");
        }
        assert_eq!(event("[]").unwrap_err().field, "event");
    }

    #[test]
    fn the_callers_tenant_stands_in_for_a_missing_one_only() {
        let envelope = PLAIN.replacen(r#""tenantId":"acme","#, "", 1);
        let input =
            |envelope: &str| EventInput { envelope: envelope.to_owned(), payload: Some("1".to_owned()) };
        assert_eq!(event(&envelope).unwrap_err().to_string(), "`tenantId` is missing");
        let stood_in = PlatformEvent::parse(input(&envelope), Some("shop")).unwrap();
        assert_eq!(stood_in.envelope.tenant_id, "shop");
        assert_eq!(PlatformEvent::parse(input(PLAIN), Some("shop")).unwrap().envelope.tenant_id, "acme");
    }
}
