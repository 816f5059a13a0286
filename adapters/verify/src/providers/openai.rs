//! OpenAI: Standard Webhooks, with the events of the platform API.
//!
//! The scheme is in [`crate::standard`]; openai 6.49.0 (npm, `resources/webhooks/webhooks.js`) is where the verdicts and
//! the forms of events are from. Its verifier reads more spellings of a signature than OpenAI writes; these are refused.

use crate::{
    Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{required_event_type, unix_ms_from_seconds},
    standard::{StandardHeaders, require_standard, sign_standard},
};

const NAME: &str = "openai";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const EVENT_FIELDS: &[&str] = &["type", "created_at", "data"];

/// The provider `openai`.
#[derive(Debug, Clone, Copy)]
pub struct OpenAi;

impl Provider for OpenAi {
    fn name(&self) -> &'static str {
        NAME
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method(METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        let id = require_standard(request, &StandardHeaders::WEBHOOK, settings, context)?;
        Ok(Verified::new(vec![read_event(id, request.body)?]))
    }
}

/// Signs as OpenAI does, with one `v1`.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, now_unix: i64) -> Outgoing {
    sign_standard(request, &StandardHeaders::WEBHOOK, secret, now_unix)
}

fn read_event<'a>(id: &str, body: &'a [u8]) -> Result<VerifiedEvent<'a>, Rejection> {
    let payload = json_text(body)?;
    let fields = Fields::read(payload, EVENT_FIELDS)?;
    Ok(VerifiedEvent {
        id: Some(id.to_owned()),
        event_type: required_event_type(NAME, &fields, "type")?,
        occurred_at_unix_ms: fields.lenient("created_at").and_then(unix_ms_from_seconds),
        subject: fields.object("data", &["id"]).and_then(|data| data.short_text("id")),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, NOW, assert_conventions, event, outcome};

    const BODY: &str = r#"{"object":"event","id":"evt_1","type":"response.completed","created_at":1767226595,
        "data":{"id":"resp_1"}}"#;

    #[test]
    fn what_fields_become() {
        let event = event(&OpenAi, BODY);
        assert!(event.id.is_some_and(|id| id.starts_with("msg_")), "the id of the message, not of the body");
        assert_eq!(event.event_type, "openai.response.completed");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_226_595_000));
        assert_eq!(event.subject.as_deref(), Some("resp_1"));
        assert_eq!(event.payload, BODY);
    }

    #[test]
    fn a_retry_is_the_same_fact_and_another_message_is_not() {
        let identity = |id: &str, signed_unix| {
            let request = Outgoing::post("", "application/json", BODY);
            let request = request.with_header(StandardHeaders::WEBHOOK.id, id);
            let verified = Arriving::signed_at(&OpenAi, request, signed_unix).verified(&OpenAi);
            verified.events.into_iter().map(|event| (event.id, event.fact)).collect::<Vec<_>>()
        };
        assert_eq!(identity("msg_1", NOW - 200), identity("msg_1", NOW));
        assert_ne!(identity("msg_1", NOW), identity("msg_2", NOW));
    }

    #[test]
    fn what_is_not_an_event_is_refused_and_odd_conveniences_are_left_out() {
        for body in ["", "[]", "{}", r#"{"type":7}"#, r#"{"type":""}"#, r#"{"type":"a","type":"a"}"#] {
            assert_eq!(outcome(&OpenAi, body), "unreadable_body", "{body}");
        }
        let odd = event(&OpenAi, r#"{"type":"a","created_at":"now","data":{"id":{}}}"#);
        assert_eq!((odd.occurred_at_unix_ms, odd.subject), (None, None));
    }

    #[test]
    fn conventions_are_kept() {
        assert_conventions(&OpenAi, BODY);
    }
}
