//! What a verified request carries, and the rules that make a provider's event fit the platform.

use std::borrow::Cow;

use crate::limits::{EVENT_TYPE_LENGTH_MAX, SHORT_TEXT_LENGTH_MAX};

/// What a request that passed carries.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified<'a> {
    /// The events in the order in which the request holds them: one for most providers, several for those that
    /// send batches, none for a ping or a handshake.
    pub events: Vec<VerifiedEvent<'a>>,
    /// What the provider wants to read once every event is recorded; `None` where any 2xx will do.
    pub answer: Option<Answer>,
    /// An address of the provider that has to be called with GET before the answer, to confirm a subscription.
    pub confirm_url: Option<String>,
}

impl<'a> Verified<'a> {
    /// A request that carries these events.
    #[must_use]
    pub fn new(events: Vec<VerifiedEvent<'a>>) -> Self {
        Self { events, answer: None, confirm_url: None }
    }

    /// A request without events that wants this answer: a handshake, a ping or a probe.
    #[must_use]
    pub fn handshake(answer: Answer) -> Self {
        Self::new(Vec::new()).with_answer(answer)
    }

    /// The same with an answer of the provider's own form.
    #[must_use]
    pub fn with_answer(mut self, answer: Answer) -> Self {
        self.answer = Some(answer);
        self
    }
}

/// An answer of the form that a provider asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Further headers, `content-type` among them if there is a body.
    pub headers: Vec<(&'static str, String)>,
    /// The body, perhaps empty.
    pub body: String,
}

impl Answer {
    /// An answer without a body.
    #[must_use]
    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: String::new() }
    }

    /// 200 with plain text. `nosniff` keeps browsers from taking what a sender put into it for a page.
    #[must_use]
    pub fn text(body: impl Into<String>) -> Self {
        let headers = vec![
            ("content-type", "text/plain; charset=utf-8".to_owned()),
            ("x-content-type-options", "nosniff".to_owned()),
        ];
        Self { status: 200, headers, body: body.into() }
    }

    /// 200 with JSON text.
    #[must_use]
    pub fn json(body: impl Into<String>) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { status: 200, headers, body: body.into() }
    }
}

/// One event, in the platform's terms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct VerifiedEvent<'a> {
    /// The provider's own id, 1–200 visible ASCII characters; `None` when the provider gives none.
    pub id: Option<String>,
    /// What beside the id makes the event another fact, such as the state that a message has come to. An id that
    /// never stands for two facts needs nothing here. Without an id this is the whole identity, and if it is
    /// empty as well, the payload is.
    pub fact: Vec<String>,
    /// Lower-case dotted words with the provider in front, at most 128 characters: `stripe.invoice.paid`.
    pub event_type: String,
    /// When it happened, by the provider's clock, in milliseconds since 1970; within the years 1970 to 9999.
    pub occurred_at_unix_ms: Option<i64>,
    /// The account of the provider to which the event belongs, for events on behalf of others (Stripe Connect).
    /// The adapter maps it to a tenant.
    pub account: Option<String>,
    /// `false` for test data, where the provider tells.
    pub livemode: Option<bool>,
    /// What the event is about, 1–200 visible ASCII characters: events with the same subject belong in order.
    pub subject: Option<String>,
    /// Version of the payload's form, by the provider's name for it.
    pub version: Option<String>,
    /// Id of what made the provider send the event, such as an API request.
    pub causation_id: Option<String>,
    /// The event as JSON text. Where the body is the event, this is the body to the byte, without the JSON white
    /// space around it; it is owned only where a provider wraps the JSON in something else.
    pub payload: Cow<'a, str>,
}

/// The platform's type for a provider's: `stripe` and `invoice.paid` give `stripe.invoice.paid`.
///
/// Letters become lower-case, and each character outside `[a-z0-9_-]` becomes `_`, as does an empty word.
/// `v2.core.account[requirements].updated` is `stripe.v2.core.account_requirements_.updated` then. Two types may
/// meet in one this way, which routing can live with; the payload has the original.
///
/// `None` when the provider's type is empty, or when the result is longer than the platform allows. It is not
/// shortened: the end of a type says most about it.
#[must_use]
pub fn platform_event_type(provider: &str, provider_type: &str) -> Option<String> {
    if provider_type.is_empty() {
        return None;
    }
    let mut event_type = String::from(provider);
    for word in provider_type.split('.') {
        event_type.push('.');
        event_type.push_str(if word.is_empty() { "_" } else { "" });
        event_type.extend(word.chars().map(type_character));
    }
    (event_type.len() <= EVENT_TYPE_LENGTH_MAX).then_some(event_type)
}

/// The platform's type for an item of a batch: one whose type is missing or cannot be mapped is `<provider>.unknown`,
/// because it must not hide the items beside it.
#[must_use]
pub fn platform_event_type_or_unknown(provider: &str, provider_type: Option<&str>) -> String {
    provider_type
        .and_then(|provider_type| platform_event_type(provider, provider_type))
        .unwrap_or_else(|| [provider, ".unknown"].concat())
}

fn type_character(c: char) -> char {
    match c.to_ascii_lowercase() {
        allowed @ ('a'..='z' | '0'..='9' | '_' | '-') => allowed,
        _ => '_',
    }
}

/// Whether a text can be an id or another short text of the platform: 1–200 visible ASCII characters.
#[must_use]
pub(crate) fn is_short_text(text: &str) -> bool {
    (1..=SHORT_TEXT_LENGTH_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_mapped_into_the_alphabet() {
        for (provider_type, expected) in [
            ("invoice.paid", "stripe.invoice.paid"),
            ("ping", "stripe.ping"),
            ("Issue.Opened", "stripe.issue.opened"),
            ("v2.core.account[requirements].updated", "stripe.v2.core.account_requirements_.updated"),
            ("a b/c:d", "stripe.a_b_c_d"),
            ("é.x", "stripe._.x"),
            (".a..b.", "stripe._.a._.b._"),
        ] {
            assert_eq!(platform_event_type("stripe", provider_type).as_deref(), Some(expected));
        }
    }

    #[test]
    fn types_that_cannot_be_mapped_are_none() {
        assert_eq!(platform_event_type("stripe", ""), None);
        assert!(platform_event_type("stripe", &"a".repeat(128 - "stripe.".len())).is_some());
        assert_eq!(platform_event_type("stripe", &"a".repeat(129 - "stripe.".len())), None);
    }

    #[test]
    fn a_type_that_is_missing_is_unknown() {
        let long = "a".repeat(200);
        for (provider_type, expected) in [
            (Some("a.b"), "x.a.b"),
            (None, "x.unknown"),
            (Some(""), "x.unknown"),
            (Some(&*long), "x.unknown"),
        ] {
            assert_eq!(platform_event_type_or_unknown("x", provider_type), expected);
        }
    }

    #[test]
    fn short_texts_are_visible_ascii() {
        assert!(is_short_text("!") && is_short_text(&"~".repeat(200)));
        for text in ["", " ", "a b", "a\n", "é", &"a".repeat(201)] {
            assert!(!is_short_text(text), "{text:?}");
        }
    }
}
