//! The part of a URL behind the question mark.

use crate::refusal::Refusal;

/// Entries on a page if the operator does not say.
const LIMIT_DEFAULT: usize = 50;

/// The path and the query of an absolute URL as the runtime writes it.
pub fn split(url: &str) -> (&str, &str) {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let from_path = after_scheme.find('/').and_then(|at| after_scheme.get(at..)).unwrap_or_default();
    let without_fragment = from_path.split('#').next().unwrap_or_default();
    without_fragment.split_once('?').unwrap_or((without_fragment, ""))
}

/// The parameters of a query, of which each may be given once.
#[derive(Debug)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query; a name that is not `known`, or that comes twice, is refused.
    pub fn parse(text: &str, known: &[&str]) -> Result<Self, Refusal> {
        let mut parameters: Vec<(String, String)> = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name)?, decoded(value)?);
            if !known.contains(&name.as_str()) {
                let shown: String = name.chars().take(40).collect();
                return Err(Refusal::Invalid(format!(
                    "unknown parameter `{shown}`; known are {}",
                    known.join(", ")
                )));
            }
            if parameters.iter().any(|(given, _)| *given == name) {
                return Err(Refusal::Invalid(format!("`{name}` is given twice")));
            }
            parameters.push((name, value));
        }
        Ok(Self(parameters))
    }

    /// A parameter's value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// How many entries a page is to have: `limit`.
    pub fn limit(&self) -> Result<usize, Refusal> {
        match self.get("limit").map(str::parse) {
            None => Ok(LIMIT_DEFAULT),
            Some(Ok(limit)) => Ok(limit),
            Some(Err(_)) => Err(Refusal::Invalid("`limit` is not a number".to_owned())),
        }
    }

    /// A parameter's value, as text of its own.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }
}

/// `+` is a space and `%XX` a byte, as browsers and curl write them.
fn decoded(text: &str) -> Result<String, Refusal> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => bytes.push(escaped(rest.next(), rest.next()).ok_or_else(|| unreadable(text))?),
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| unreadable(text))
}

fn escaped(high: Option<u8>, low: Option<u8>) -> Option<u8> {
    let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

fn unreadable(text: &str) -> Refusal {
    let shown: String = text.chars().take(40).collect();
    Refusal::Invalid(format!("the query holds what is not encoded as URLs are: '{shown}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_and_query() {
        for (url, expected) in [
            ("https://ops.example.com/api/v1/incidents?a=1&b=/x?y#z", ("/api/v1/incidents", "a=1&b=/x?y")),
            ("http://127.0.0.1:8787/api", ("/api", "")),
            ("https://ops.example.com", ("", "")),
            ("https://ops.example.com/#a?b", ("/", "")),
        ] {
            assert_eq!(split(url), expected, "{url}");
        }
    }

    #[test]
    fn parameters_are_decoded() {
        let query =
            Query::parse("error=50%25+%C3%A9%26&limit=&&status", &["error", "limit", "status"]).unwrap();
        assert_eq!(query.get("error"), Some("50% é&"));
        assert_eq!(
            (query.get("limit"), query.get("status"), query.get("tenant")),
            (Some(""), Some(""), None)
        );
    }

    #[test]
    fn what_is_unknown_twice_or_broken_is_refused() {
        for (text, part) in [
            ("limits=3", "unknown parameter `limits`; known are limit"),
            ("limit=3&limit=4", "`limit` is given twice"),
            ("limit=%", "not encoded"),
            ("limit=%f", "not encoded"),
            ("limit=%zz", "not encoded"),
            ("limit=%ff", "not encoded"),
        ] {
            let Err(Refusal::Invalid(message)) = Query::parse(text, &["limit"]) else { panic!("{text}") };
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
