//! What a verified request carries, and the rules that make a provider's event fit the platform.

use std::borrow::Cow;

use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{
    Headers, Rejection,
    body::Fields,
    limits::{EVENT_TYPE_LENGTH_MAX, OCCURRED_AT_UNIX_MS_MAX, SHORT_TEXT_LENGTH_MAX},
};

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
    /// Whether whoever repeats a signed request could change the id. The id is then no part of the identity, and `fact` is
    /// all of it.
    pub is_id_unsigned: bool,
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

/// The platform's type of an event whose provider always names one in the field `name`.
///
/// # Errors
/// [`Rejection::Unreadable`] when the field is absent, not text, empty or too long.
pub(crate) fn required_event_type(
    provider: &str,
    fields: &Fields<'_>,
    name: &str,
) -> Result<String, Rejection> {
    let provider_type: String = fields.value(name)?.ok_or(Rejection::Unreadable("no type"))?;
    platform_event_type(provider, &provider_type)
        .ok_or(Rejection::Unreadable("the type is empty or too long"))
}

/// The platform's type of an event whose provider names it in the header `name`.
///
/// # Errors
/// [`Rejection::Unreadable`] when the header is absent, there twice, empty or too long.
pub(crate) fn header_event_type(provider: &str, headers: &Headers, name: &str) -> Result<String, Rejection> {
    let provider_type =
        headers.field(name)?.ok_or(Rejection::Unreadable("the header of the type is missing"))?;
    platform_event_type(provider, provider_type).ok_or(Rejection::Unreadable("the type is empty or too long"))
}

/// A subject as forges write it: `group/project`, or with the number of a request or an issue in it `group/project#7`.
/// `None` when the project's path is absent or the whole is no short text.
pub(crate) fn forge_subject(path: Option<String>, sign: &str, number: Option<u64>) -> Option<String> {
    let mut subject = path?;
    if let Some(number) = number {
        subject.push_str(sign);
        subject.push_str(&number.to_string());
    }
    Some(subject).filter(|subject| is_short_text(subject))
}

/// The platform's type of one of several events in a request; `<provider>.unknown` where the item names none that can
/// be mapped, because one odd item must not hide the others.
pub(crate) fn event_type_or_unknown(provider: &str, provider_type: Option<&str>) -> String {
    let event_type = provider_type.and_then(|provider_type| platform_event_type(provider, provider_type));
    event_type.unwrap_or_else(|| [provider, ".unknown"].concat())
}

/// A time in milliseconds since 1970, if the platform can write it: within the years 1970 to 9999.
pub(crate) fn checked_unix_ms(unix_ms: i64) -> Option<i64> {
    (0..=OCCURRED_AT_UNIX_MS_MAX).contains(&unix_ms).then_some(unix_ms)
}

/// A time in seconds since 1970, in milliseconds.
pub(crate) fn unix_ms_from_seconds(seconds: i64) -> Option<i64> {
    checked_unix_ms(seconds.checked_mul(1000)?)
}

/// A time as RFC 3339 text, in milliseconds since 1970.
pub(crate) fn unix_ms_from_rfc3339(text: &str) -> Option<i64> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    checked_unix_ms(i64::try_from(time.unix_timestamp_nanos().div_euclid(1_000_000)).ok()?)
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
    fn a_type_is_required() {
        for (text, expected) in [
            (r#"{"type":"A.b"}"#, Ok("stripe.a.b")),
            ("{}", Err(400)),
            (r#"{"type":7}"#, Err(400)),
            (r#"{"type":""}"#, Err(400)),
        ] {
            let fields = Fields::read(text, &["type"]).unwrap();
            let event_type = required_event_type("stripe", &fields, "type");
            assert_eq!(event_type.as_deref().map_err(Rejection::status), expected, "{text}");
        }
    }

    #[test]
    fn a_type_may_be_in_a_header() {
        let headers = Headers::from_iter([("X-Event", "Push Hook"), ("x-b", ""), ("x-c", "a"), ("x-c", "b")]);
        assert_eq!(header_event_type("gitlab", &headers, "x-event").as_deref(), Ok("gitlab.push_hook"));
        for name in ["x-a", "x-b", "x-c"] {
            assert!(header_event_type("gitlab", &headers, name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_subject_is_written_as_forges_do() {
        let subject = |path: &str, number| forge_subject(Some(path.to_owned()), "!", number);
        assert_eq!(subject("a/b", Some(7)).as_deref(), Some("a/b!7"));
        assert_eq!(subject("a/b", None).as_deref(), Some("a/b"));
        assert_eq!(
            (subject("a b", None), subject("", None), forge_subject(None, "!", Some(7))),
            (None, None, None)
        );
    }

    #[test]
    fn an_item_without_a_type_is_unknown() {
        assert_eq!(event_type_or_unknown("line", Some("message")), "line.message");
        for odd in [None, Some(""), Some("a".repeat(200).as_str())] {
            assert_eq!(event_type_or_unknown("line", odd), "line.unknown");
        }
    }

    #[test]
    fn times_are_within_the_years_1970_to_9999() {
        assert_eq!(unix_ms_from_seconds(1_767_237_942), Some(1_767_237_942_000));
        for seconds in [-1, 253_402_300_800, i64::MAX] {
            assert_eq!(unix_ms_from_seconds(seconds), None, "{seconds}");
        }
        assert_eq!(unix_ms_from_rfc3339("2026-01-01T01:02:03.1239+01:00"), Some(1_767_225_723_123));
        for text in ["", "2026-01-01", "2026-01-01T00:00:00", "1969-12-31T23:59:59Z"] {
            assert_eq!(unix_ms_from_rfc3339(text), None, "{text}");
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
