//! Coinbase Commerce: one HMAC over the body, in which the event is wrapped in its delivery.
//!
//! The scheme is that of coinbase-commerce-node 1.0.4 (`Webhook.verifySigHeader`); the fields are those of
//! docs.cdp.coinbase.com/commerce (Webhooks).

use crate::{
    Answer, Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{required_event_type, unix_ms_from_rfc3339},
    signature::{decode_hex_lower, hmac_sha256, require_hmac_header, sha256_hex},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-cc-webhook-signature";

const NAME: &str = "coinbase_commerce";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const EVENT_FIELDS: &[&str] = &["id", "type", "api_version", "created_at", "data"];

/// The provider `coinbase_commerce`.
#[derive(Debug, Clone, Copy)]
pub struct CoinbaseCommerce;

impl Provider for CoinbaseCommerce {
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

/// Signs as Coinbase Commerce does. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let digest = hmac_sha256(secret.as_bytes(), &[&request.body]);
    request.with_header(SIGNATURE_HEADER, hex::encode(digest))
}

/// Reads the event in a delivery. What is around it changes with each attempt, so an event without an id is known by
/// its own text.
fn read_event(body: &[u8]) -> Result<VerifiedEvent<'_>, Rejection> {
    let payload = json_text(body)?;
    let event = Fields::read(payload, &["event"])?.raw("event").ok_or(Rejection::Unreadable("no event"))?;
    let fields = Fields::read(event, EVENT_FIELDS)?;
    let id = fields.id("id")?;
    let fact = if id.is_some() { Vec::new() } else { vec![sha256_hex(event.as_bytes())] };
    let data = fields.object("data", &["id", "code"]);
    let created_at: Option<String> = fields.lenient("created_at");
    Ok(VerifiedEvent {
        id,
        fact,
        event_type: required_event_type(NAME, &fields, "type")?,
        occurred_at_unix_ms: created_at.as_deref().and_then(unix_ms_from_rfc3339),
        subject: data.and_then(|data| data.short_text("id").or_else(|| data.short_text("code"))),
        version: fields.short_text("api_version"),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, assert_conventions, assert_header_signs_body, event, outcome};

    const BODY: &str = r#"{"attempt_number":1,"event":{"api_version":"2018-03-22","created_at":"2026-01-01T00:00:00Z",
        "data":{"code":"687BTHZE","id":"e3d894a5-4d0d"},"id":"9a14fba2-c17b","type":"charge:created"},
        "id":"7ea827ef-f503","scheduled_for":"2026-01-01T00:00:00Z"}"#;

    #[test]
    fn what_fields_become() {
        let verified = Arriving::signed(&CoinbaseCommerce, BODY).verified(&CoinbaseCommerce);
        assert_eq!(verified.answer, Some(Answer::empty(200)));
        let event = &verified.events[0];
        assert_eq!(event.id.as_deref(), Some("9a14fba2-c17b"));
        assert_eq!(event.event_type, "coinbase_commerce.charge_created");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_225_600_000));
        assert_eq!(event.subject.as_deref(), Some("e3d894a5-4d0d"));
        assert_eq!(event.version.as_deref(), Some("2018-03-22"));
        assert_eq!(event.payload, BODY);
    }

    #[test]
    fn a_retry_is_the_same_fact_and_another_event_is_not() {
        let identity = |body: &str| {
            let event = event(&CoinbaseCommerce, body);
            (event.id, event.fact)
        };
        let without_id = BODY.replace(r#""id":"9a14fba2-c17b","#, "");
        for body in [BODY, without_id.as_str()] {
            let retry = body.replace("number\":1", "number\":2").replace("7ea827ef", "8fb938fa");
            assert_eq!(identity(&retry), identity(body));
            let other = body.replace("9a14fba2", "8b25acb3").replace("687BTHZE", "9P2YCLQN");
            assert_ne!(identity(&other), identity(body));
        }
    }

    #[test]
    fn what_is_not_an_event_is_refused() {
        for body in [
            "",
            "{}",
            r#"{"event":null}"#,
            r#"{"event":[]}"#,
            r#"{"event":{}}"#,
            r#"{"event":{"type":"a","id":7}}"#,
            r#"{"event":{"type":"a"},"event":{"type":"b"}}"#,
        ] {
            assert_eq!(outcome(&CoinbaseCommerce, body), "unreadable_body", "{body}");
        }
        assert_eq!(outcome(&CoinbaseCommerce, r#"{"event":{"type":"a","data":7,"created_at":1}}"#), "accept");
    }

    #[test]
    fn the_body_is_signed() {
        assert_header_signs_body(&CoinbaseCommerce, SIGNATURE_HEADER, BODY);
        assert_conventions(&CoinbaseCommerce, BODY);
    }
}
