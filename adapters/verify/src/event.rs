//! What a verified request carries, and the rules that make a provider's event fit the platform.

use std::borrow::Cow;

use crate::limits::{EVENT_TYPE_LENGTH_MAX, SHORT_TEXT_LENGTH_MAX};

/// What a request that passed carries.
///
/// More fields may come, such as the answer that a handshake asks for; a request without events is answered 200
/// like any other.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified<'a> {
    /// The events in the order in which the request holds them: one for most providers, several for those that
    /// send batches, none for a ping or a handshake.
    pub events: Vec<VerifiedEvent<'a>>,
}

impl<'a> Verified<'a> {
    /// A request that carries these events.
    #[must_use]
    pub fn new(events: Vec<VerifiedEvent<'a>>) -> Self {
        Self { events }
    }
}

/// One event, in the platform's terms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct VerifiedEvent<'a> {
    /// Identity by the provider's own rule, 1–200 visible ASCII characters; `None` when the provider gives none,
    /// and the adapter derives one.
    pub id: Option<String>,
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
    fn short_texts_are_visible_ascii() {
        assert!(is_short_text("!") && is_short_text(&"~".repeat(200)));
        for text in ["", " ", "a b", "a\n", "é", &"a".repeat(201)] {
            assert!(!is_short_text(text), "{text:?}");
        }
    }
}
