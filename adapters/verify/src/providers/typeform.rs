//! Typeform: one HMAC-SHA256 over the body; no time is signed.
//!
//! The scheme is the one of typeform.com/developers/webhooks/secure-your-webhooks, which third parties implement alike;
//! there is no SDK that verifies. The fields are those of typeform.com/developers/webhooks/example-payload.

use crate::{
    Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{required_event_type, unix_ms_from_rfc3339},
    signature::{decode_base64, encode_base64, hmac_sha256, require_hmac_header},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "typeform-signature";
/// What stands before the digest in the header.
pub const SIGNATURE_PREFIX: &str = "sha256=";

const NAME: &str = "typeform";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const EVENT_FIELDS: &[&str] = &["event_id", "event_type", "form_response"];
const RESPONSE_FIELDS: &[&str] = &["token", "submitted_at"];

/// The provider `typeform`.
#[derive(Debug, Clone, Copy)]
pub struct Typeform;

impl Provider for Typeform {
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
        require_hmac_header(request, &settings.secrets, SIGNATURE_HEADER, decode_signature, &[request.body])?;
        Ok(Verified::new(vec![read_event(request.body)?]))
    }
}

fn decode_signature(header: &str) -> Option<[u8; 32]> {
    decode_base64(header.strip_prefix(SIGNATURE_PREFIX)?)
}

/// Signs as Typeform does. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let digest = hmac_sha256(secret.as_bytes(), &[&request.body]);
    let signature = [SIGNATURE_PREFIX, &encode_base64(&digest)].concat();
    request.with_header(SIGNATURE_HEADER, signature)
}

fn read_event(body: &[u8]) -> Result<VerifiedEvent<'_>, Rejection> {
    let payload = json_text(body)?;
    let fields = Fields::read(payload, EVENT_FIELDS)?;
    let response = fields.object("form_response", RESPONSE_FIELDS).unwrap_or_default();
    Ok(VerifiedEvent {
        id: fields.id("event_id")?,
        event_type: required_event_type(NAME, &fields, "event_type")?,
        occurred_at_unix_ms: response
            .lenient::<String>("submitted_at")
            .as_deref()
            .and_then(unix_ms_from_rfc3339),
        subject: response.short_text("token"),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_conventions, assert_header_signs_body, event, outcome};

    const BODY: &str = r#"{"event_id":"01K","event_type":"form_response","form_response":{"form_id":"fUNX",
        "token":"pcd6","landed_at":"2026-01-01T00:00:00Z","submitted_at":"2026-01-01T00:01:00Z"}}"#;

    #[test]
    fn what_fields_become() {
        let event = event(&Typeform, BODY);
        assert_eq!(event.id.as_deref(), Some("01K"));
        assert_eq!(event.event_type, "typeform.form_response");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_225_660_000));
        assert_eq!(event.subject.as_deref(), Some("pcd6"));
        assert_eq!(event.payload, BODY);
    }

    #[test]
    fn a_retry_is_the_same_fact_and_another_event_is_not() {
        let identity = |body: &str| {
            let event = event(&Typeform, body);
            (event.id, event.fact)
        };
        assert_eq!(identity(BODY), identity(BODY));
        // The same response first in part and then whole: two events, each with an id.
        let partial = BODY.replace("form_response\",", "form_response_partial\",").replace("01K", "01L");
        assert_ne!(identity(BODY), identity(&partial));
        assert_eq!(event(&Typeform, r#"{"event_type":"form_response"}"#).id, None);
    }

    #[test]
    fn what_is_not_an_event_is_refused_and_odd_conveniences_are_left_out() {
        for body in ["", "[]", "{}", r#"{"event_type":7}"#, r#"{"event_type":"a","event_id":7}"#] {
            assert_eq!(outcome(&Typeform, body), "unreadable_body", "{body}");
        }
        let odd = event(&Typeform, r#"{"event_type":"a","form_response":{"token":7,"submitted_at":"x"}}"#);
        assert_eq!((odd.occurred_at_unix_ms, odd.subject), (None, None));
    }

    #[test]
    fn the_body_is_signed() {
        assert_header_signs_body(&Typeform, SIGNATURE_HEADER, BODY);
    }

    #[test]
    fn conventions_are_kept() {
        assert_conventions(&Typeform, BODY);
    }
}
