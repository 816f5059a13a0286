//! Square: one HMAC over the notification URL and the body.
//!
//! The scheme is that of square 46.0.0 (`WebhooksHelper.verifySignature`); the fields are those of
//! developer.squareup.com/docs/webhooks. The retired `x-square-signature` (HMAC-SHA1) is not looked at.

use crate::{
    Context, Outgoing, Provider, ProviderOption, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{required_event_type, unix_ms_from_rfc3339},
    signature::{decode_base64, encode_base64, hmac_sha256, require_hmac_header},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-square-hmacsha256-signature";
/// Option with the signed URL.
pub const URL_OPTION: &str = "url";

const NAME: &str = "square";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const EVENT_FIELDS: &[&str] = &["event_id", "type", "created_at", "merchant_id", "data"];
const OPTIONS: &[ProviderOption] = &[ProviderOption {
    name: URL_OPTION,
    is_required: false,
    help: "the notification URL to the byte as it is set at Square, if requests arrive under another one",
}];

/// The provider `square`.
#[derive(Debug, Clone, Copy)]
pub struct Square;

impl Provider for Square {
    fn name(&self) -> &'static str {
        NAME
    }

    fn options(&self) -> &'static [ProviderOption] {
        OPTIONS
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        _context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method(METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        let url = settings.option(URL_OPTION).unwrap_or(request.url);
        let signed = signed_parts(url, request.body);
        require_hmac_header(request, &settings.secrets, SIGNATURE_HEADER, decode_base64, &signed)?;
        Ok(Verified::new(vec![read_event(request.body)?]))
    }
}

/// The bytes that are signed, in parts.
fn signed_parts<'a>(url: &'a str, body: &'a [u8]) -> [&'a [u8]; 2] {
    [url.as_bytes(), body]
}

/// Signs as Square does. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let digest = hmac_sha256(secret.as_bytes(), &signed_parts(&request.url, &request.body));
    request.with_header(SIGNATURE_HEADER, encode_base64(&digest))
}

fn read_event(body: &[u8]) -> Result<VerifiedEvent<'_>, Rejection> {
    let payload = json_text(body)?;
    let fields = Fields::read(payload, EVENT_FIELDS)?;
    let created_at: Option<String> = fields.lenient("created_at");
    Ok(VerifiedEvent {
        id: fields.id("event_id")?,
        event_type: required_event_type(NAME, &fields, "type")?,
        occurred_at_unix_ms: created_at.as_deref().and_then(unix_ms_from_rfc3339),
        account: fields.short_text("merchant_id"),
        subject: fields.object("data", &["id"]).and_then(|data| data.short_text("id")),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        Arriving, URL, assert_conventions, assert_header_signs_body, event, outcome, settings,
    };

    const BODY: &str = r#"{"merchant_id":"MLSOILAG7KKM6","type":"payment.updated","event_id":"8c557648-32f6",
        "created_at":"2026-01-01T00:18:29.123Z","data":{"type":"payment","id":"nSbJe2CkpG","object":{}}}"#;

    #[test]
    fn what_fields_become() {
        let event = event(&Square, &format!(" {BODY}\n"));
        assert_eq!(event.id.as_deref(), Some("8c557648-32f6"));
        assert!(event.fact.is_empty());
        assert_eq!(event.event_type, "square.payment.updated");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_226_709_123));
        assert_eq!(event.account.as_deref(), Some("MLSOILAG7KKM6"));
        assert_eq!(event.subject.as_deref(), Some("nSbJe2CkpG"));
        assert_eq!(event.payload, BODY);
    }

    #[test]
    fn conveniences_are_left_out_and_identity_is_not_guessed() {
        let odd = event(&Square, r#"{"type":"a","created_at":7,"merchant_id":[],"data":"x"}"#);
        assert_eq!((odd.id, odd.occurred_at_unix_ms, odd.account, odd.subject), (None, None, None, None));
        for body in ["", "[]", "{}", r#"{"type":7}"#, r#"{"type":"a","event_id":7}"#] {
            assert_eq!(outcome(&Square, body), "unreadable_body", "{body}");
        }
    }

    #[test]
    fn url_and_body_are_signed() {
        assert_header_signs_body(&Square, SIGNATURE_HEADER, BODY);
        assert_conventions(&Square, BODY);
        let good = Arriving::signed(&Square, BODY);
        for url in ["", "https://hooks.example.com/webhook", &URL.replace('a', "A"), &format!("{URL}/")] {
            let moved = Arriving { url: url.to_owned(), ..good.clone() };
            assert_eq!(moved.outcome(&Square), "signature_mismatch", "{url}");
            let configured = settings(&Square).with_option(URL_OPTION, URL);
            assert_eq!(moved.outcome_with(&Square, &configured), "accept", "{url}");
        }
        let configured = settings(&Square).with_option(URL_OPTION, "https://other.example.com/");
        assert_eq!(good.outcome_with(&Square, &configured), "signature_mismatch");
    }

    #[test]
    fn the_retired_signature_does_not_count() {
        let mut retired = Arriving::signed(&Square, BODY);
        let digest =
            crate::signature::hmac_sha1(crate::testing::SECRET.as_bytes(), &signed_parts(URL, &retired.body));
        retired.headers = vec![("x-square-signature", encode_base64(&digest))];
        assert_eq!(retired.outcome(&Square), "signature_missing");
    }

    #[test]
    fn headers_that_are_not_signed_do_not_change_the_event() {
        let mut retry = Arriving::signed(&Square, BODY);
        let first = retry.clone().verified(&Square);
        retry.headers.push(("square-retry-number", "1".to_owned()));
        retry.headers.push(("square-environment", "Production".to_owned()));
        assert_eq!(retry.verified(&Square), first);
    }
}
