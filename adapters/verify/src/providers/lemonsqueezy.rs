//! Lemon Squeezy: one HMAC over the body, and no event id.
//!
//! The scheme is the one of docs.lemonsqueezy.com/help/webhooks, which third parties implement alike; there is no SDK
//! that verifies. The fields are those of the same pages.

use crate::{
    Answer, Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{is_short_text, required_event_type, unix_ms_from_rfc3339},
    signature::{decode_hex_lower, hmac_sha256, require_hmac_header},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-signature";

const NAME: &str = "lemonsqueezy";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";

/// The provider `lemonsqueezy`.
#[derive(Debug, Clone, Copy)]
pub struct LemonSqueezy;

impl Provider for LemonSqueezy {
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
        require_hmac_header(request, &settings.secrets, SIGNATURE_HEADER, decode_hex_lower, &signed)?;
        Ok(Verified::new(vec![read_event(request.body)?]).with_answer(Answer::empty(200)))
    }
}

/// Signs as Lemon Squeezy does. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let digest = hmac_sha256(secret.as_bytes(), &[&request.body]);
    request.with_header(SIGNATURE_HEADER, hex::encode(digest))
}

/// Reads the event. Its type is taken from the body, because the header that repeats it is not signed.
fn read_event(body: &[u8]) -> Result<VerifiedEvent<'_>, Rejection> {
    let payload = json_text(body)?;
    let fields = Fields::read(payload, &["meta", "data"])?;
    let meta = fields.object("meta", &["event_name", "test_mode"]).ok_or(Rejection::Unreadable("no meta"))?;
    let data = fields.object("data", &["type", "id", "attributes"]).unwrap_or_default();
    let attributes = data.object("attributes", &["store_id", "updated_at", "test_mode"]).unwrap_or_default();
    let is_test: Option<bool> = meta.lenient("test_mode").or_else(|| attributes.lenient("test_mode"));
    let updated_at: Option<String> = attributes.lenient("updated_at");
    Ok(VerifiedEvent {
        event_type: required_event_type(NAME, &meta, "event_name")?,
        occurred_at_unix_ms: updated_at.as_deref().and_then(unix_ms_from_rfc3339),
        account: attributes.lenient::<u64>("store_id").map(|id| id.to_string()),
        livemode: is_test.map(|is_test| !is_test),
        subject: subject(&data),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

/// `orders/1`: ids are numbers that count within a type of object.
fn subject(data: &Fields<'_>) -> Option<String> {
    let subject = [data.short_text("type")?, data.short_text("id")?].join("/");
    Some(subject).filter(|subject| is_short_text(subject))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, assert_conventions, assert_header_signs_body, event, outcome};

    const BODY: &str = r#"{"meta":{"event_name":"order_created","test_mode":true,"webhook_id":"39ab610c"},
        "data":{"type":"orders","id":"1",
        "attributes":{"store_id":7,"total":999,"updated_at":"2026-01-01T00:00:00.000000Z"}}}"#;

    #[test]
    fn what_fields_become() {
        let verified = Arriving::signed(&LemonSqueezy, BODY).verified(&LemonSqueezy);
        assert_eq!(verified.answer, Some(Answer::empty(200)));
        let event = &verified.events[0];
        assert_eq!(event.event_type, "lemonsqueezy.order_created");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_225_600_000));
        assert_eq!((event.account.as_deref(), event.livemode), (Some("7"), Some(false)));
        assert_eq!(event.subject.as_deref(), Some("orders/1"));
        assert_eq!(event.payload, BODY);
    }

    #[test]
    fn the_body_is_the_identity_and_no_header_changes_the_event() {
        let mut request = Arriving::signed(&LemonSqueezy, BODY);
        let first = request.clone().verified(&LemonSqueezy);
        assert_eq!((&first.events[0].id, first.events[0].fact.len()), (&None, 0));
        request.headers.push(("x-event-name", "order_refunded".to_owned()));
        assert_eq!(request.verified(&LemonSqueezy), first);
        let renewed = event(&LemonSqueezy, &BODY.replace("00:00:00.", "00:00:01."));
        assert_ne!(renewed.payload, first.events[0].payload);
    }

    #[test]
    fn conveniences_are_left_out_and_a_type_is_required() {
        let odd = event(
            &LemonSqueezy,
            r#"{"meta":{"event_name":"a"},"data":{"id":1,"attributes":{"store_id":"x"}}}"#,
        );
        assert_eq!(
            (odd.account, odd.livemode, odd.subject, odd.occurred_at_unix_ms),
            (None, None, None, None)
        );
        for body in ["", "{}", r#"{"meta":[]}"#, r#"{"meta":{}}"#, r#"{"meta":{"event_name":""}}"#] {
            assert_eq!(outcome(&LemonSqueezy, body), "unreadable_body", "{body}");
        }
    }

    #[test]
    fn the_body_is_signed() {
        assert_header_signs_body(&LemonSqueezy, SIGNATURE_HEADER, BODY);
        assert_conventions(&LemonSqueezy, BODY);
    }
}
