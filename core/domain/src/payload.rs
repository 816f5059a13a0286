//! A payload: JSON text that is kept as it came.
//!
//! It is checked once, at the door, and from then on moved as text: big integers, `1.0`, key order, duplicate keys and
//! escapes survive because nothing ever parses and writes it again.

use serde::de::IgnoredAny;

use crate::ids;
use crate::limits::{PAYLOAD_BYTES_MAX, PAYLOAD_DEPTH_MAX, PAYLOAD_INLINE_BYTES_MAX};
use crate::time::{Timestamp, is_day};

/// The text of one JSON value, without white space around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload(String);

/// Why a text is no payload.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPayload {
    /// Larger than an event may carry.
    #[error("is {0} bytes long; the limit is {PAYLOAD_BYTES_MAX}")]
    TooLarge(usize),
    /// Not one JSON value; the text is the parser's, with line and column.
    #[error("is not JSON: {0}")]
    NotJson(String),
    /// Nested beyond what JSON readers take without special settings.
    #[error("is nested deeper than {PAYLOAD_DEPTH_MAX} levels")]
    TooDeep,
}

impl Payload {
    /// Takes a JSON text. White space around the value is not part of it and goes; every other byte stays.
    pub fn new(text: String) -> Result<Self, InvalidPayload> {
        if text.len() > PAYLOAD_BYTES_MAX {
            return Err(InvalidPayload::TooLarge(text.len()));
        }
        if depth(&text) > PAYLOAD_DEPTH_MAX {
            return Err(InvalidPayload::TooDeep);
        }
        serde_json::from_str::<IgnoredAny>(&text).map_err(|e| InvalidPayload::NotJson(e.to_string()))?;
        let value = text.trim_matches([' ', '\t', '\n', '\r']);
        if value.len() == text.len() { Ok(Self(text)) } else { Ok(Self(value.to_owned())) }
    }

    /// The text, to the byte.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the ledger row holds it; a larger one goes to R2.
    pub fn is_inline(&self) -> bool {
        self.0.len() <= PAYLOAD_INLINE_BYTES_MAX
    }

    /// SHA-256 of the text, in hex.
    pub fn hash(&self) -> String {
        ids::payload_hash(&self.0)
    }
}

/// Where the payloads of all days are.
pub const BLOB_PREFIX: &str = "payloads/";

/// Where R2 keeps the payload with this hash that arrives at `now`. Equal payloads of a day share an object, and a put that
/// runs twice changes nothing.
///
/// The day is there for the sake of deleting. Only a payload that arrives makes its object wanted, so no object of a past
/// day can ever become wanted again, and one that no event refers to may go without asking whether somebody is about to.
pub fn blob_key(payload_hash: &str, now: Timestamp) -> String {
    format!("{BLOB_PREFIX}{}/{payload_hash}", now.day())
}

/// The day of a payload's object, as `YYYY-MM-DD`, which sorts as text. `None` if the key is not of that form.
pub fn blob_day(key: &str) -> Option<&str> {
    let (day, hash) = key.strip_prefix(BLOB_PREFIX)?.split_once('/')?;
    (is_day(day) && hash.len() == 64).then_some(day)
}

/// Whether an object of this key must hold the payload with this hash.
pub fn is_blob_of(key: &str, payload_hash: &str) -> bool {
    key.starts_with(BLOB_PREFIX) && key.rsplit('/').next() == Some(payload_hash)
}

/// The deepest nesting of brackets outside strings. Counts before the text is known to be JSON, because a parser that
/// recurses must never see what is too deep for it.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(text: &str) -> Result<Payload, InvalidPayload> {
        Payload::new(text.to_owned())
    }

    #[test]
    fn the_text_stays_and_the_space_around_it_goes() {
        let text = "{ \"n\": 12345678901234567890.0, \"a\":1,\n \"a\": \"\\u00e9 \u{1F600}\" }";
        assert_eq!(payload(&format!("\r\n {text}\t\n")).unwrap().as_str(), text);
        assert_eq!(payload("null").unwrap().as_str(), "null");
    }

    #[test]
    fn refuses_what_is_not_one_json_value() {
        for text in ["", " ", "{", "{}{}", "nul", "NaN", "\"\u{0}\"", "{\"a\":1,}", "\u{feff}{}"] {
            assert!(matches!(payload(text), Err(InvalidPayload::NotJson(_))), "{text:?}");
        }
    }

    #[test]
    fn nesting_ends_at_the_limit_and_brackets_in_strings_do_not_count() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(payload(&nested(PAYLOAD_DEPTH_MAX)).is_ok());
        assert_eq!(payload(&nested(PAYLOAD_DEPTH_MAX + 1)), Err(InvalidPayload::TooDeep));
        assert_eq!(payload(&"[".repeat(1_000_000)), Err(InvalidPayload::TooDeep));
        assert!(payload(&format!("\"\\\"{}\"", "[".repeat(500))).is_ok());
    }

    #[test]
    fn a_key_tells_the_day_and_the_hash() {
        let hash = payload("{}").unwrap().hash();
        let key = blob_key(&hash, Timestamp::from_unix_ms(1_767_237_943_042));
        assert_eq!(key, format!("payloads/2026-01-01/{hash}"));
        assert_eq!(blob_day(&key), Some("2026-01-01"));
        assert!(is_blob_of(&key, &hash) && !is_blob_of(&key, "") && !is_blob_of(&hash, &hash));
        for other in ["payloads/2026-01-01/x", "payloads/2026-1-1/", &format!("payloads/{hash}"), "events/"] {
            assert_eq!(blob_day(other), None, "{other}");
        }
    }

    #[test]
    fn the_limit_of_size_is_inclusive() {
        let text = |n: usize| format!("\"{}\"", "a".repeat(n - 2));
        assert!(payload(&text(PAYLOAD_BYTES_MAX)).is_ok());
        assert_eq!(
            payload(&text(PAYLOAD_BYTES_MAX + 1)),
            Err(InvalidPayload::TooLarge(PAYLOAD_BYTES_MAX + 1))
        );
        assert!(payload(&text(PAYLOAD_INLINE_BYTES_MAX)).unwrap().is_inline());
        assert!(!payload(&text(PAYLOAD_INLINE_BYTES_MAX + 1)).unwrap().is_inline());
    }
}
