//! Standard Webhooks: any sender that follows the specification under its own header names.
//!
//! The scheme is in [`crate::standard`]; the form of a body is what the specification recommends
//! (standard-webhooks/standard-webhooks, `spec/standard-webhooks.md`) and no sender is bound to. Verdicts are those of
//! standardwebhooks 1.1.1 (npm) and 1.1.0 (PyPI).

use crate::{
    Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{checked_unix_ms, event_type_or_unknown, unix_ms_from_rfc3339},
    standard::{StandardHeaders, require_standard, sign_standard},
};

const NAME: &str = "standardwebhooks";
const METHOD: &str = "POST";
const EVENT_FIELDS: &[&str] = &["type", "timestamp", "created_at", "data"];
/// A time that is a number is in milliseconds from here on. As seconds it would lie beyond the year 5000, and a smaller
/// one might be either.
const UNIX_MS_MIN: i64 = 100_000_000_000;

/// The provider `standardwebhooks`.
#[derive(Debug, Clone, Copy)]
pub struct StandardWebhooks;

impl Provider for StandardWebhooks {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Senders differ in the content type that they give their JSON, so none is refused.
    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method(METHOD)?;
        let id = require_standard(request, &StandardHeaders::WEBHOOK, settings, context)?;
        Ok(Verified::new(vec![read_event(NAME, id, request.body)?]))
    }
}

/// Signs as the specification says, with one `v1`.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, now_unix: i64) -> Outgoing {
    sign_standard(request, &StandardHeaders::WEBHOOK, secret, now_unix)
}

/// Reads the event of a body whose form is recommended and not required, so that nothing in it can make the event
/// unreadable as long as it is an object: without a usable `type` it is `<provider>.unknown`.
pub(crate) fn read_event<'a>(
    provider: &str,
    id: &str,
    body: &'a [u8],
) -> Result<VerifiedEvent<'a>, Rejection> {
    let payload = json_text(body)?;
    let fields = Fields::read(payload, EVENT_FIELDS)?;
    Ok(VerifiedEvent {
        id: Some(id.to_owned()),
        event_type: event_type_or_unknown(provider, fields.lenient::<String>("type").as_deref()),
        occurred_at_unix_ms: occurred_at_unix_ms(&fields),
        subject: fields.object("data", &["id"]).and_then(|data| data.short_text("id")),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

/// `timestamp` is text by RFC 3339 in the specification and a number of milliseconds at Clerk; Resend calls it
/// `created_at`.
fn occurred_at_unix_ms(fields: &Fields<'_>) -> Option<i64> {
    if let Some(unix_ms) = fields.lenient::<i64>("timestamp") {
        return checked_unix_ms(unix_ms).filter(|unix_ms| *unix_ms >= UNIX_MS_MIN);
    }
    let text = fields.lenient::<String>("timestamp").or_else(|| fields.lenient("created_at"))?;
    unix_ms_from_rfc3339(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, NOW, event, outcome};

    const BODY: &str = r#" {"type":"User.created","timestamp":"2026-01-01T00:12:57.123456Z","data":{"id":"usr_1","n":1.0}}
    "#;

    /// An attempt to deliver a body under an id.
    fn attempt(id: &str, body: &str, signed_unix: i64) -> VerifiedEvent<'static> {
        let request = Outgoing::post("", "application/json", body);
        let request = request.with_header(StandardHeaders::WEBHOOK.id, id);
        let verified =
            Arriving::signed_at(&StandardWebhooks, request, signed_unix).verified(&StandardWebhooks);
        let [event] = <[_; 1]>::try_from(verified.events).unwrap();
        event
    }

    #[test]
    fn what_fields_become() {
        let event = attempt("msg_1", BODY, NOW);
        assert_eq!(event.id.as_deref(), Some("msg_1"));
        assert_eq!(event.event_type, "standardwebhooks.user.created");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_226_377_123));
        assert_eq!(event.subject.as_deref(), Some("usr_1"));
        assert_eq!((event.account, event.livemode, event.version), (None, None, None));
        assert_eq!(event.payload, BODY.trim());
    }

    #[test]
    fn a_retry_is_the_same_fact_and_another_message_is_not() {
        let identity = |event: VerifiedEvent<'_>| (event.id, event.fact);
        let first = identity(attempt("msg_1", BODY, NOW - 200));
        assert_eq!(identity(attempt("msg_1", BODY, NOW)), first);
        assert_ne!(identity(attempt("msg_2", BODY, NOW)), first);
    }

    #[test]
    fn times_come_in_the_forms_that_senders_use() {
        for (fields, expected) in [
            (r#""timestamp":"2026-01-01T00:12:57Z""#, Some(1_767_226_377_000)),
            (r#""timestamp":1767226485000"#, Some(1_767_226_485_000)),
            (r#""created_at":"2026-01-01T00:14:45.000Z""#, Some(1_767_226_485_000)),
            (r#""timestamp":1767226485"#, None),
            (r#""timestamp":-1"#, None),
            (r#""timestamp":1.5"#, None),
            (r#""created_at":1767226485"#, None),
            (r#""timestamp":"yesterday""#, None),
        ] {
            let event = event(&StandardWebhooks, &format!("{{{fields}}}"));
            assert_eq!(event.occurred_at_unix_ms, expected, "{fields}");
        }
    }

    #[test]
    fn no_form_is_required_of_an_object() {
        let long = format!(r#"{{"type":"{}"}}"#, "a".repeat(200));
        let bodies = ["{}", r#"{"type":null}"#, r#"{"type":7}"#, r#"{"type":""}"#, &long, r#"{"data":[]}"#];
        for body in bodies {
            let event = event(&StandardWebhooks, body);
            assert_eq!(
                (event.event_type.as_str(), event.subject),
                ("standardwebhooks.unknown", None),
                "{body}"
            );
        }
        for body in ["", "hello", "null", "[]", "{", "\u{feff}{}", r#"{"type":"a","type":"b"}"#] {
            assert_eq!(outcome(&StandardWebhooks, body), "unreadable_body", "{body}");
        }
    }

    #[test]
    fn any_content_type_and_one_method() {
        for media_type in ["application/json", "application/cloudevents+json", "text/plain"] {
            let request = Outgoing::post("", media_type, BODY);
            let arriving = Arriving::signed_at(&StandardWebhooks, request, NOW);
            assert_eq!(arriving.outcome(&StandardWebhooks), "accept", "{media_type}");
        }
        let get = Arriving { method: "GET", ..Arriving::signed(&StandardWebhooks, BODY) };
        assert_eq!(get.outcome(&StandardWebhooks), "method_not_allowed");
    }
}
