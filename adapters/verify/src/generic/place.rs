//! Where a field of an event is: `/data/id` in the body, or `header:x-event-id`.

use serde_json::Value;

use super::scheme::is_header_name;
use crate::{
    Rejection, Request,
    event::{checked_unix_ms, unix_ms_from_rfc3339, unix_ms_from_seconds},
};

/// From here on a number is rather milliseconds than seconds: as seconds it would be in the year 5138.
const MILLISECONDS_FROM: i64 = 100_000_000_000;

/// A place in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// A JSON Pointer (RFC 6901) into the body.
    Pointer(String),
    /// A header.
    Header(String),
}

/// A body that was parsed to look into.
pub(super) struct Document(Value);

impl Document {
    pub fn parse(payload: &str) -> Result<Self, Rejection> {
        serde_json::from_str(payload).map(Self).map_err(|_| Rejection::Unreadable("not JSON"))
    }
}

impl Place {
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix("header:") {
            Some(name) if is_header_name(name) => Ok(Self::Header(name.to_owned())),
            None if text.starts_with('/') => Ok(Self::Pointer(text.to_owned())),
            _ => Err(format!("is '{text}'; it must be a JSON Pointer such as /data/id, or header:name")),
        }
    }

    /// What is there as text: texts and numbers. Nothing, `null` and an empty text count as nothing.
    pub fn find(&self, document: &Document, request: &Request<'_>) -> Result<Option<String>, Rejection> {
        let found = match self {
            Self::Header(name) => request.headers.field(name)?.map(str::to_owned),
            Self::Pointer(pointer) => match document.0.pointer(pointer) {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) => Some(text.clone()),
                Some(Value::Number(number)) => Some(number.to_string()),
                Some(_) => {
                    return Err(Rejection::Unreadable("a configured field is neither text nor number"));
                }
            },
        };
        Ok(found.filter(|text| !text.is_empty()))
    }
}

/// A time in one of the usual forms: seconds or milliseconds since 1970, or RFC 3339.
pub(super) fn unix_ms(text: &str) -> Option<i64> {
    match text.parse::<i64>() {
        Ok(number) if number >= MILLISECONDS_FROM => checked_unix_ms(number),
        Ok(number) => unix_ms_from_seconds(number),
        Err(_) => unix_ms_from_rfc3339(text),
    }
}
