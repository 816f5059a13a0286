//! Keys that providers publish instead of sharing a secret. This crate says where one is and never fetches anything.

use std::fmt;

/// Where a key is to be had. The address is on a host that the provider's file pins; nothing of it is taken from the
/// request on trust.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeySource {
    /// `https://…`
    pub url: String,
    /// What is posted there, as JSON text; `None` asks with GET. It may hold what the provider's API wants for a
    /// password, so it must not be logged.
    pub body: Option<String>,
}

impl KeySource {
    /// A document at an address.
    #[must_use]
    pub fn document(url: impl Into<String>) -> Self {
        Self { url: url.into(), body: None }
    }

    /// An answer to JSON text that is posted to an address.
    #[must_use]
    pub fn answer(url: impl Into<String>, body: impl Into<String>) -> Self {
        Self { url: url.into(), body: Some(body.into()) }
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.body.as_ref().map(|_| "[redacted]");
        formatter.debug_struct("KeySource").field("url", &self.url).field("body", &body).finish()
    }
}

/// Host and path of an address that a request names, for comparison with what is pinned.
///
/// `None` for everything but `https://host/path` in its plainest spelling: no other scheme, no port, no user, no query
/// or fragment, no upper-case or encoded character, no `.` or `..` to climb with. What is left, every reader of
/// addresses takes apart in the same way.
#[must_use]
pub fn https_host_and_path(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("https://")?;
    let (host, path) = rest.split_at(rest.find('/')?);
    let in_host = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-');
    let in_path = |byte: u8| matches!(byte, b'/' | b'.' | b'_' | b'-') || byte.is_ascii_alphanumeric();
    let is_plain = !host.is_empty()
        && host.bytes().all(in_host)
        && path.bytes().all(in_path)
        && !path.split('/').any(|part| matches!(part, "." | ".."));
    is_plain.then_some((host, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_plainest_address_is_taken_apart() {
        assert_eq!(https_host_and_path("https://a-1.example/x/Y_z.pem"), Some(("a-1.example", "/x/Y_z.pem")));
        assert_eq!(https_host_and_path("https://a.example/"), Some(("a.example", "/")));
        for url in [
            "",
            "https://a.example",
            "http://a.example/x",
            "HTTPS://a.example/x",
            "//a.example/x",
            "https:///x",
            "https://a.example:443/x",
            "https://user@a.example/x",
            "https://A.example/x",
            "https://a.example/x?y",
            "https://a.example?/x",
            "https://a.example#/x",
            "https://a.example/x#y",
            "https://a.example/../x",
            "https://a.example/./x",
            "https://a.example/%2e%2e/x",
            "https://b.example\\@a.example/x",
            "https://a.example/x\\y",
            " https://a.example/x",
            "https://a.example/x\n",
            "https://é.example/x",
        ] {
            assert_eq!(https_host_and_path(url), None, "{url}");
        }
    }

    #[test]
    fn debug_shows_no_body() {
        let source = KeySource::answer("https://a.example/", "hidden");
        assert!(!format!("{source:?}").contains("hidden"));
    }
}
