//! The queue message: versioned JSON text, because structured bodies lose maps and big numbers on the way. A queue always
//! holds messages of the previous release, so old versions stay readable; golden samples are kept in `tests/golden`.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::event::{Context, Envelope};
use crate::lease::Generation;
use crate::ledger::DispatchKey;
use crate::limits::{FIELD_BYTES_MAX, MESSAGE_INLINE_BYTES_MAX, PAYLOAD_INLINE_BYTES_MAX, STACK_BYTES_MAX};
use crate::time::Timestamp;
use crate::topic::Topic;

/// The version that this release writes.
const VERSION: u32 = 1;

/// An inline payload is embedded as it is, not escaped, so a message is never much larger than the payload in it.
const _: () = assert!(PAYLOAD_INLINE_BYTES_MAX + 16 * FIELD_BYTES_MAX < MESSAGE_INLINE_BYTES_MAX);

/// Where a payload is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Here, as JSON text.
    Inline(String),
    /// In the blob store, under this key.
    Blob(String),
}

/// One event on its way to one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The event, without its payload.
    pub envelope: Envelope,
    /// The payload, or where it is.
    pub body: Body,
    /// The topic whose queue carries it.
    pub topic: Topic,
    /// The incident or delivery that this message repeats on an operator's wish.
    pub replay_of: Option<String>,
    /// How often operators had the dispatch repeated when this was sent. A message of an earlier count is void.
    pub replay: u32,
    /// How many times the gateway has sent it, this time included.
    pub attempt: u32,
}

/// Why a text is not a message of ours.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableMessage {
    /// Not JSON, or not of the shape.
    #[error("not a message of this gateway: {0}")]
    Shape(#[from] serde_json::Error),
    /// Written by a newer release.
    #[error("message version {0} is not known to this release (it reads {VERSION})")]
    Version(u32),
    /// Neither or both of `payload` and `payloadRef`, or a time that is none.
    #[error("`{0}` of the message is missing or not readable")]
    Field(&'static str),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    v: u32,
    tenant_id: &'a str,
    event_id: &'a str,
    r#type: &'a str,
    topic: &'a Topic,
    timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    #[serde(flatten)]
    context: &'a Context,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_ref: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay_of: Option<&'a str>,
    #[serde(skip_serializing_if = "is_zero")]
    replay: u32,
    attempt: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    tenant_id: String,
    event_id: String,
    r#type: String,
    topic: Topic,
    timestamp: String,
    source: Option<String>,
    subject: Option<String>,
    version: Option<String>,
    correlation_id: Option<String>,
    causation_id: Option<String>,
    actor: Option<String>,
    traceparent: Option<String>,
    #[serde(default, deserialize_with = "even_null")]
    payload: Option<Box<RawValue>>,
    payload_ref: Option<String>,
    replay_of: Option<String>,
    #[serde(default)]
    replay: u32,
    attempt: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A payload of `null` is a payload; only a missing field is none.
fn even_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl Message {
    /// The message as text. The payload goes in as it stands, so not one of its bytes changes.
    pub fn encode(&self) -> Result<String, serde_json::Error> {
        let payload_ref = match &self.body {
            Body::Inline(_) => None,
            Body::Blob(key) => Some(key.as_str()),
        };
        let head = Head {
            v: VERSION,
            tenant_id: &self.envelope.tenant_id,
            event_id: &self.envelope.id,
            r#type: &self.envelope.event_type,
            topic: &self.topic,
            timestamp: self.envelope.timestamp.rfc3339(),
            source: self.envelope.source.as_deref(),
            subject: self.envelope.subject.as_deref(),
            context: &self.envelope.context,
            payload_ref,
            replay_of: self.replay_of.as_deref(),
            replay: self.replay,
            attempt: self.attempt,
        };
        let mut text = serde_json::to_string(&head)?;
        if let Body::Inline(payload) = &self.body {
            text.pop();
            text.push_str(",\"payload\":");
            text.push_str(payload);
            text.push('}');
        }
        Ok(text)
    }

    /// Reads a message of this or an earlier release.
    pub fn decode(text: &str) -> Result<Self, UnreadableMessage> {
        #[derive(Deserialize)]
        struct Versioned {
            v: u32,
        }
        match serde_json::from_str::<Versioned>(text)?.v {
            VERSION => Self::from_wire(serde_json::from_str(text)?),
            other => Err(UnreadableMessage::Version(other)),
        }
    }

    fn from_wire(wire: Wire) -> Result<Self, UnreadableMessage> {
        let body = match (wire.payload, wire.payload_ref) {
            (Some(payload), None) => Body::Inline(String::from(Box::<str>::from(payload))),
            (None, Some(key)) => Body::Blob(key),
            _ => return Err(UnreadableMessage::Field("payload")),
        };
        let timestamp =
            Timestamp::parse_rfc3339(&wire.timestamp).ok_or(UnreadableMessage::Field("timestamp"))?;
        let envelope = Envelope {
            id: wire.event_id,
            tenant_id: wire.tenant_id,
            event_type: wire.r#type,
            timestamp,
            source: wire.source,
            subject: wire.subject,
            context: Context {
                version: wire.version,
                correlation_id: wire.correlation_id,
                causation_id: wire.causation_id,
                actor: wire.actor,
                traceparent: wire.traceparent,
            },
        };
        let Wire { topic, replay_of, replay, attempt, .. } = wire;
        Ok(Self { envelope, body, topic, replay_of, replay, attempt })
    }

    /// The dispatch that this message is about.
    pub fn key(&self) -> DispatchKey {
        DispatchKey {
            tenant_id: self.envelope.tenant_id.clone(),
            event_id: self.envelope.id.clone(),
            topic: self.topic.clone(),
        }
    }

    /// The generation of that dispatch to which this message belongs.
    pub fn generation(&self) -> Generation {
        Generation { key: self.key(), replay: self.replay }
    }
}

/// What a consumer sends to its dead-letter queue: the message as it came, and why it ended there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// The version of this shape.
    pub v: u32,
    /// The queue that the message came from.
    pub source_queue: String,
    /// How often the queue had delivered it.
    pub attempts: u32,
    /// Why it was given up.
    pub error: String,
    /// Where in the consumer's code. Letters of earlier releases have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// When, in RFC 3339.
    pub failed_at: String,
    /// The message's text.
    pub message: String,
}

impl DeadLetter {
    /// The version that this release writes, and the only one that it reads.
    pub const VERSION: u32 = 1;

    /// Reads a letter; `None` if the text is something else.
    pub fn decode(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|letter: &Self| letter.v == Self::VERSION)
    }
}

/// A stack, cut to what is kept of it.
pub fn short_stack(stack: &str) -> String {
    stack.get(..stack.floor_char_boundary(STACK_BYTES_MAX)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INLINE: &str = include_str!("../tests/golden/message-v1-inline.json");
    const BLOB: &str = include_str!("../tests/golden/message-v1-ref.json");
    const REPLAY: &str = include_str!("../tests/golden/message-v1-replay.json");
    const LETTER: &str = include_str!("../tests/golden/dead-letter-v1.json");
    const LETTER_WITH_STACK: &str = include_str!("../tests/golden/dead-letter-v1-stack.json");

    #[test]
    fn golden_messages_are_read_and_written_to_the_byte() {
        for golden in [INLINE, BLOB, REPLAY] {
            let message = Message::decode(golden.trim_end()).unwrap();
            assert_eq!(message.encode().unwrap(), golden.trim_end());
        }
    }

    #[test]
    fn a_message_without_a_generation_is_of_the_first() {
        let generations = [INLINE, BLOB, REPLAY].map(|golden| Message::decode(golden).unwrap().replay);
        assert_eq!(generations, [0, 0, 2]);
        for wrong in ["-1", "1.5", "\"1\"", "4294967296"] {
            let text = REPLAY.replacen("\"replay\":2", &format!("\"replay\":{wrong}"), 1);
            assert!(Message::decode(&text).is_err(), "{wrong}");
        }
    }

    #[test]
    fn golden_letters_are_read_and_written_to_the_byte() {
        for (golden, has_stack) in [(LETTER, false), (LETTER_WITH_STACK, true)] {
            let letter = DeadLetter::decode(golden.trim_end()).unwrap();
            assert_eq!(serde_json::to_string(&letter).unwrap(), golden.trim_end());
            assert_eq!(letter.stack.is_some(), has_stack);
            assert!(Message::decode(&letter.message).is_ok());
        }
        for other in [INLINE, "hello", "{}", &LETTER.replacen("\"v\":1", "\"v\":2", 1)] {
            assert_eq!(DeadLetter::decode(other), None, "{other}");
        }
    }

    #[test]
    fn a_stack_is_cut_between_characters() {
        assert_eq!(short_stack("short"), "short");
        assert_eq!(short_stack(&format!("a{}", "é".repeat(STACK_BYTES_MAX))).len(), STACK_BYTES_MAX - 1);
    }

    #[test]
    fn an_inline_payload_keeps_every_byte() {
        let payload = "{ \"b\": 1.0, \"a\": 90071992547409931, \"b\":\"\\u00e9\u{1F600}\" }";
        for payload in [payload, "null", "0.10"] {
            let mut message = Message::decode(INLINE).unwrap();
            message.body = Body::Inline(payload.to_owned());
            let read = Message::decode(&message.encode().unwrap()).unwrap();
            assert_eq!(read.body, Body::Inline(payload.to_owned()));
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_reason() {
        for (text, part) in [
            ("hello", "not a message"),
            ("{}", "missing field `v`"),
            ("{\"v\":2}", "version 2 is not known"),
            (&INLINE.replacen("\"payload\"", "\"other\"", 1), "`payload`"),
            (&INLINE.replacen("2026-01-01T", "01.01.2026 ", 1), "`timestamp`"),
        ] {
            let error = Message::decode(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
