//! What is kept of a request beside its body, and the form in which both are one object: a line of JSON, then the body to
//! the byte.

use serde::{Deserialize, Serialize};

use super::key::RejectedKey;
use crate::time::Timestamp;

/// The form of what is kept. Another version is refused rather than guessed at.
const VERSION: u8 = 1;

/// A request that did not pass, without its body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RejectedRequest {
    version: u8,
    /// The provider whose rules it did not meet.
    pub provider: String,
    /// The tenant that its path named.
    pub tenant_id: Option<String>,
    /// Why, as a word for machines: `signature_mismatch`.
    pub reason: String,
    /// Why, as a sentence that holds neither secret nor signature.
    pub detail: String,
    /// Upper-case method.
    pub method: String,
    /// The whole URL.
    pub url: String,
    /// The headers as they arrived.
    pub headers: Vec<(String, String)>,
    /// When it arrived, in milliseconds since 1970.
    received_at_unix_ms: i64,
}

/// What is kept is not what this gateway keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a request as this version of the gateway keeps them")]
pub struct Unreadable;

impl RejectedRequest {
    /// A request of a provider that arrived at a moment; the rest is to be filled in.
    pub fn new(provider: &str, received_at: Timestamp) -> Self {
        Self {
            version: VERSION,
            provider: provider.to_owned(),
            tenant_id: None,
            reason: String::new(),
            detail: String::new(),
            method: String::new(),
            url: String::new(),
            headers: Vec::new(),
            received_at_unix_ms: received_at.unix_ms(),
        }
    }

    /// Reads what [`to_json`](Self::to_json) has written.
    pub fn from_json(json: &[u8]) -> Result<Self, Unreadable> {
        let request: Self = serde_json::from_slice(json).map_err(|_| Unreadable)?;
        if request.version == VERSION { Ok(request) } else { Err(Unreadable) }
    }

    /// One line of JSON.
    pub fn to_json(&self) -> String {
        // Text, numbers and lists of them can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// When it arrived.
    pub fn received_at(&self) -> Timestamp {
        Timestamp::from_unix_ms(self.received_at_unix_ms)
    }

    /// The key under which it is kept. `token` is random; 16 of its letters and digits tell requests of one millisecond apart.
    pub fn key(&self, token: &str) -> RejectedKey {
        let token: String = token.chars().filter(char::is_ascii_alphanumeric).take(16).collect();
        RejectedKey::new(self.received_at(), &token, &self.provider, &self.reason, self.tenant_id.as_deref())
    }

    /// The object that holds request and body.
    pub fn object(&self, body: &[u8]) -> Vec<u8> {
        [self.to_json().as_bytes(), b"\n", body].concat()
    }

    /// Request and body of an object.
    pub fn of_object(object: &[u8]) -> Result<(Self, &[u8]), Unreadable> {
        let end = object.iter().position(|byte| *byte == b'\n').ok_or(Unreadable)?;
        let (line, body) = object.split_at(end);
        let (_, body) = body.split_first().ok_or(Unreadable)?;
        Ok((Self::from_json(line)?, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> RejectedRequest {
        RejectedRequest {
            reason: "signature_mismatch".to_owned(),
            method: "POST".to_owned(),
            headers: vec![("x-a".to_owned(), "1\u{e9}".to_owned()), ("x-a".to_owned(), "2".to_owned())],
            ..RejectedRequest::new("github", Timestamp::from_unix_ms(1_767_225_600_123))
        }
    }

    #[test]
    fn every_byte_comes_back() {
        for body in [b"{\n\xff\x00".as_slice(), b"", b"\n"] {
            let object = request().object(body);
            assert_eq!(RejectedRequest::of_object(&object), Ok((request(), body)));
        }
    }

    #[test]
    fn what_somebody_else_wrote_is_refused() {
        let other_version = request().to_json().replace("\"version\":1", "\"version\":2");
        for object in ["", "{}", "{}\n", "\n{}", &format!("{other_version}\n")] {
            assert_eq!(RejectedRequest::of_object(object.as_bytes()), Err(Unreadable), "{object}");
        }
    }
}
