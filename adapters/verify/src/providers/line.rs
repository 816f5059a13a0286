//! LINE Messaging API: one HMAC over the body, several events in it, and none when the console tries the endpoint.
//!
//! The scheme is that of @line/bot-sdk 11.0.0 (`validateSignature`), with one spelling of base64 only; the fields are
//! those of developers.line.biz/en/reference/messaging-api (webhook event objects).

use crate::{
    Answer, Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{checked_unix_ms, event_type_or_unknown},
    signature::{decode_base64, encode_base64, hmac_sha256, require_hmac_header},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-line-signature";

const NAME: &str = "line";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const ITEM_FIELDS: &[&str] = &["webhookEventId", "type", "timestamp", "source"];

/// The provider `line`.
#[derive(Debug, Clone, Copy)]
pub struct Line;

impl Provider for Line {
    fn name(&self) -> &'static str {
        NAME
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        _context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method(METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        let signed = [request.body];
        require_hmac_header(request, &settings.secrets, SIGNATURE_HEADER, decode_base64, &signed)?;
        let fields = Fields::read(json_text(request.body)?, &["destination", "events"])?;
        let destination = fields.short_text("destination");
        let items = fields.items("events")?;
        let events = items.into_iter().map(|item| read_item(item, destination.clone())).collect();
        Ok(Verified::new(events).with_answer(Answer::empty(200)))
    }
}

/// Signs as LINE does. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let digest = hmac_sha256(secret.as_bytes(), &[&request.body]);
    request.with_header(SIGNATURE_HEADER, encode_base64(&digest))
}

/// Reads one event. An item of another form is an event of unknown type, and one whose id is none is known by its
/// text, so that neither hides the others.
fn read_item(item: &str, account: Option<String>) -> VerifiedEvent<'_> {
    let fields = Fields::read(item, ITEM_FIELDS).unwrap_or_default();
    let line_type: Option<String> = fields.lenient("type");
    VerifiedEvent {
        id: fields.short_text("webhookEventId"),
        event_type: event_type_or_unknown(NAME, line_type.as_deref()),
        occurred_at_unix_ms: fields.lenient("timestamp").and_then(checked_unix_ms),
        account,
        subject: subject(&fields),
        payload: item.into(),
        ..VerifiedEvent::default()
    }
}

/// The chat that the event is from: the group or room before the user who spoke in it.
fn subject(fields: &Fields<'_>) -> Option<String> {
    let source = fields.object("source", &["groupId", "roomId", "userId"])?;
    ["groupId", "roomId", "userId"].into_iter().find_map(|name| source.short_text(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, assert_conventions, assert_header_signs_body, events, outcome};

    const ITEM: &str = r#"{"type":"message","message":{"type":"text","id":"3891","text":"x"},
        "webhookEventId":"016RATK3","deliveryContext":{"isRedelivery":false},
        "timestamp":1767237376123,"source":{"type":"user","userId":"Ua0ed"},
        "replyToken":"5ef2","mode":"active"}"#;

    fn body(items: &[&str]) -> String {
        format!(r#"{{"destination":"U6db2ac","events":[{}]}}"#, items.join(", "))
    }

    #[test]
    fn several_items_are_several_events() {
        let second =
            ITEM.replace("016RATK3", "016RATK4").replace("\"userId\"", "\"groupId\":\"C1\",\"userId\"");
        let odd = r#"{"webhookEventId":"a b"}"#;
        let verified = Arriving::signed(&Line, &body(&[ITEM, odd, "null", &second])).verified(&Line);
        assert_eq!(verified.answer, Some(Answer::empty(200)));
        let [event, unknown, null, other] = <[_; 4]>::try_from(verified.events).unwrap();
        assert_eq!(event.id.as_deref(), Some("016RATK3"));
        assert_eq!(event.event_type, "line.message");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_237_376_123));
        assert_eq!(event.account.as_deref(), Some("U6db2ac"));
        assert_eq!(event.subject.as_deref(), Some("Ua0ed"));
        assert_eq!(event.payload, ITEM);
        assert_eq!((unknown.id, unknown.event_type.as_str(), &*unknown.payload), (None, "line.unknown", odd));
        assert_eq!((null.event_type.as_str(), &*null.payload), ("line.unknown", "null"));
        assert_eq!((other.id.as_deref(), other.subject.as_deref()), (Some("016RATK4"), Some("C1")));
    }

    #[test]
    fn the_console_tries_the_endpoint_without_events() {
        assert_eq!(
            Arriving::signed(&Line, &body(&[])).verified(&Line),
            Verified::handshake(Answer::empty(200))
        );
    }

    #[test]
    fn a_redelivery_is_the_same_fact_and_another_event_is_not() {
        let identity = |item: &str| {
            let event = events(&Line, &body(&[item])).remove(0);
            (event.id, event.fact)
        };
        assert_eq!(identity(&ITEM.replace("false", "true")), identity(ITEM));
        assert_ne!(identity(&ITEM.replace("016RATK3", "016RATK4")), identity(ITEM));
    }

    #[test]
    fn what_holds_no_events_is_refused() {
        for unreadable in
            ["", "[]", "{}", r#"{"events":null}"#, r#"{"events":{}}"#, r#"{"events":[],"events":[]}"#]
        {
            assert_eq!(outcome(&Line, unreadable), "unreadable_body", "{unreadable}");
        }
    }

    #[test]
    fn the_body_is_signed() {
        assert_header_signs_body(&Line, SIGNATURE_HEADER, &body(&[ITEM]));
        assert_conventions(&Line, &body(&[ITEM]));
    }
}
