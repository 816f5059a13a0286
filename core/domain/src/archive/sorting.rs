//! Telling what lies in a dead-letter queue: a letter of the consumer kit, a message that the platform has moved by itself, or
//! something that was never the gateway's.

use crate::ids::content_hash;
use crate::inbox::RawBody;
use crate::incident::{ForeignReport, Kind, Report, foreign_id, incident_id};
use crate::limits::PAYLOAD_INLINE_BYTES_MAX;
use crate::message::{DeadLetter, Message, short_stack};
use crate::settle::short_error;
use crate::topic::DEAD_LETTER_SUFFIX;

/// A dead letter, as far as it can be told without the ledger.
#[derive(Debug)]
pub enum Sorted {
    /// It names a dispatch.
    Ours(Ours),
    /// It does not.
    Foreign(Foreign),
}

/// A message that names a dispatch.
#[derive(Clone, Debug)]
pub struct Ours {
    /// Its failure.
    pub report: Report,
    /// Its text, in case the ledger does not know the dispatch.
    pub text: String,
}

/// A message that is kept for what it is.
#[derive(Clone, Debug)]
pub struct Foreign {
    /// The queue that it came from.
    pub source_queue: String,
    /// What is wrong with it.
    pub error: String,
    /// What it is, without the letter around it.
    pub body: RawBody,
}

/// Looks at a message of the dead-letter queue `queue`.
pub fn sort(queue: &str, body: RawBody) -> Sorted {
    let source_queue = queue.strip_suffix(DEAD_LETTER_SUFFIX).unwrap_or(queue).to_owned();
    match body {
        RawBody::Bytes(bytes) => {
            let error = format!("not a message of this gateway: {} bytes that are no text", bytes.len());
            Sorted::Foreign(Foreign { source_queue, error, body: RawBody::Bytes(bytes) })
        }
        RawBody::Text(text) => match DeadLetter::decode(&text) {
            Some(DeadLetter { source_queue, error, stack, message, .. }) => {
                sort_text(queue, source_queue, Some(error), stack, message)
            }
            None => sort_text(queue, source_queue, None, None, text),
        },
    }
}

/// A message counts as ours only in the dead letters of its own topic: a stray copy says nothing about how the dispatch
/// fares.
fn sort_text(
    queue: &str,
    source_queue: String,
    error: Option<String>,
    stack: Option<String>,
    text: String,
) -> Sorted {
    let error = error.map(|error| short_error(&error));
    let reason = match Message::decode(&text) {
        Ok(message) if message.topic.dead_letter_queue() == queue => {
            let key = message.key();
            let report = Report {
                incident_id: incident_id(&key),
                key,
                kind: Kind::DeadLetter,
                source_queue,
                generation: message.replay,
                error,
                stack: stack.map(|stack| short_stack(&stack)),
            };
            return Sorted::Ours(Ours { report, text });
        }
        Ok(message) => format!("not ours: a message to {} in {queue}", message.topic),
        Err(unreadable) => unreadable.to_string(),
    };
    Sorted::Foreign(Foreign { source_queue, error: error.unwrap_or(reason), body: RawBody::Text(text) })
}

impl From<Ours> for Foreign {
    /// A message whose dispatch the ledger does not know.
    fn from(Ours { report, text }: Ours) -> Self {
        let unknown = || "not ours: the ledger does not know the event or its dispatch".to_owned();
        Self {
            source_queue: report.source_queue,
            error: report.error.unwrap_or_else(unknown),
            body: RawBody::Text(text),
        }
    }
}

impl Foreign {
    /// Where the blob store keeps the body, if it is not short text.
    pub fn blob_key(&self) -> Option<String> {
        let is_inline = matches!(&self.body, RawBody::Text(text) if text.len() <= PAYLOAD_INLINE_BYTES_MAX);
        (!is_inline).then(|| format!("dead-letters/{}", content_hash(self.body.as_bytes())))
    }

    /// Its report, once the blob store has the body.
    pub fn report(&self) -> ForeignReport {
        let payload_ref = self.blob_key();
        let payload = match &self.body {
            RawBody::Text(text) if payload_ref.is_none() => Some(text.clone()),
            _ => None,
        };
        ForeignReport {
            incident_id: foreign_id(&self.source_queue, self.body.as_bytes()),
            source_queue: self.source_queue.clone(),
            error: self.error.clone(),
            payload,
            payload_ref,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = include_str!("../../tests/golden/message-v1-replay.json");
    const QUEUE: &str = "billing-events-dlq";

    fn letter(message: &str, version: u32) -> String {
        let letter = DeadLetter {
            v: version,
            source_queue: "billing-events".to_owned(),
            attempts: 6,
            error: "busy".to_owned(),
            stack: Some("at line 1".to_owned()),
            failed_at: "2026-01-01T00:00:00.000Z".to_owned(),
            message: message.to_owned(),
        };
        serde_json::to_string(&letter).unwrap()
    }

    fn text(text: &str) -> RawBody {
        RawBody::Text(text.to_owned())
    }

    #[test]
    fn a_letter_brings_its_error_and_a_bare_message_none() {
        for (body, error, stack) in
            [(letter(MESSAGE, 1), Some("busy"), Some("at line 1")), (MESSAGE.to_owned(), None, None)]
        {
            let Sorted::Ours(ours) = sort(QUEUE, RawBody::Text(body)) else { panic!("not ours") };
            assert_eq!((ours.report.error.as_deref(), ours.report.stack.as_deref()), (error, stack));
            assert_eq!((ours.report.generation, ours.report.key.event_id.as_str()), (2, "evt_1"));
            assert_eq!((ours.report.source_queue.as_str(), ours.text.as_str()), ("billing-events", MESSAGE));
        }
    }

    #[test]
    fn everything_else_is_foreign_and_says_why() {
        let mangled = |from: &str, to: &str| text(&MESSAGE.replacen(from, to, 1));
        for (queue, body, reason) in [
            (QUEUE, text("hello"), "not a message of this gateway"),
            (QUEUE, text(""), "not a message of this gateway"),
            (QUEUE, text("[]"), "not a message of this gateway"),
            (QUEUE, text("null"), "not a message of this gateway"),
            (QUEUE, text(r#"{"v":1,"order":7}"#), "missing field"),
            (QUEUE, mangled("\"v\":1", "\"v\":9"), "version 9"),
            (QUEUE, mangled("\"tenantId\":\"acme\",", ""), "missing field `tenantId`"),
            (QUEUE, mangled("\"payload\"", "\"other\""), "`payload`"),
            ("audit-events-dlq", text(MESSAGE), "a message to billing.events in audit-events-dlq"),
            (QUEUE, text(&letter(MESSAGE, 2)), "version 2"),
            (QUEUE, text(&letter("hello", 1)), "busy"),
            (QUEUE, RawBody::from_bytes(vec![0xff, 0x00]), "2 bytes that are no text"),
        ] {
            let Sorted::Foreign(foreign) = sort(queue, body.clone()) else { panic!("ours: {body:?}") };
            assert!(foreign.error.contains(reason), "{}: {reason}", foreign.error);
            assert_eq!(foreign.source_queue, queue.strip_suffix("-dlq").unwrap());
        }
    }

    #[test]
    fn a_foreign_message_is_kept_without_its_letter_and_has_one_id() {
        let Sorted::Foreign(bare) = sort(QUEUE, text("hello")) else { panic!() };
        let Sorted::Foreign(wrapped) = sort(QUEUE, text(&letter("hello", 1))) else { panic!() };
        assert_eq!(bare.report().incident_id, wrapped.report().incident_id);
        assert_eq!(wrapped.report().payload.as_deref(), Some("hello"));
    }

    #[test]
    fn long_bodies_and_bytes_go_to_the_blob_store() {
        let of = |body: RawBody| Foreign { source_queue: String::new(), error: String::new(), body };
        let long = "é".repeat(PAYLOAD_INLINE_BYTES_MAX / 2);
        for (body, is_inline) in [
            (text(""), true),
            (text(&long), true),
            (text(&format!("{long}a")), false),
            (RawBody::Bytes(vec![0xff]), false),
        ] {
            let report = of(body).report();
            assert_eq!((report.payload.is_some(), report.payload_ref.is_none()), (is_inline, is_inline));
        }
        let key = of(RawBody::Bytes(vec![0xff])).blob_key().unwrap();
        assert_eq!(key, format!("dead-letters/{}", content_hash(&[0xff])));
    }
}
