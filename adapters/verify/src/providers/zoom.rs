//! Zoom: events and the validation of the endpoint.
//!
//! The scheme `v0` is that of @zoom/rivet 0.4.0 and of Zoom's webhook sample. Both compute it over the body parsed and
//! written again, Zoom's guide over the raw body, which is what we do: for what Zoom sends it is the same.

use crate::{
    Answer, Context, Outgoing, Provider, Rejection, Request, Secret, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::platform_event_type,
    signature::{hmac_sha256, is_challenge, require_v0},
    signing::sign_v0,
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-zm-signature";
/// Header that carries the signed time, seconds since 1970.
pub const TIMESTAMP_HEADER: &str = "x-zm-request-timestamp";
/// `event` of the handshake.
pub const URL_VALIDATION: &str = "endpoint.url_validation";

const NAME: &str = "zoom";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const EVENT_FIELDS: &[&str] = &["event", "event_ts", "payload"];
const PAYLOAD_FIELDS: &[&str] = &["account_id", "object", "plainToken"];

/// The provider `zoom`.
#[derive(Debug, Clone, Copy)]
pub struct Zoom;

impl Provider for Zoom {
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
        let secret = require_v0(request, settings, context.now_unix, SIGNATURE_HEADER, TIMESTAMP_HEADER)?;
        let payload = json_text(request.body)?;
        let fields = Fields::read(payload, EVENT_FIELDS)?;
        let zoom_type: String = fields.value("event")?.ok_or(Rejection::Unreadable("no event"))?;
        let about = fields.object("payload", PAYLOAD_FIELDS);
        if zoom_type == URL_VALIDATION {
            return Ok(Verified::handshake(answer_validation(about, secret)?));
        }
        let event_type = platform_event_type(NAME, &zoom_type);
        let object = about.as_ref().and_then(|about| about.object("object", &["id", "uuid"]));
        Ok(Verified::new(vec![VerifiedEvent {
            event_type: event_type.ok_or(Rejection::Unreadable("the type is empty or too long"))?,
            occurred_at_unix_ms: fields.time_in_ms("event_ts"),
            account: about.and_then(|about| about.text_or_number("account_id")),
            subject: object
                .and_then(|object| object.text_or_number("id").or_else(|| object.text_or_number("uuid"))),
            payload: payload.into(),
            ..VerifiedEvent::default()
        }]))
    }
}

/// Proves that the endpoint has the secret, the same one that the request was signed with.
fn answer_validation(about: Option<Fields<'_>>, secret: &Secret) -> Result<Answer, Rejection> {
    let token = about.and_then(|about| about.lenient::<String>("plainToken"));
    let token = token.filter(|token| is_challenge(token)).ok_or(Rejection::Unreadable("no plain token"))?;
    let digest = hex::encode(hmac_sha256(secret.expose().as_bytes(), &[token.as_bytes()]));
    Ok(Answer::json([r#"{"plainToken":""#, &token, r#"","encryptedToken":""#, &digest, r#""}"#].concat()))
}

/// Signs as Zoom does.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, now_unix: i64) -> Outgoing {
    sign_v0(request, secret, now_unix, SIGNATURE_HEADER, TIMESTAMP_HEADER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::trial::{NOW, SECRET, Trial, URL};

    const EVENT: &str = r#"{"event":"meeting.started","payload":{"account_id":"a1","object":{"id":"402","uuid":"u=="}},
        "event_ts":1767237942123}"#;

    fn trial() -> Trial {
        Trial::of(NAME)
    }

    #[test]
    fn an_event_is_read_in_full() {
        let event = trial().read_one(EVENT);
        assert_eq!((event.id, event.fact), (None, vec![]), "the payload is the identity");
        assert_eq!(event.event_type, "zoom.meeting.started");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_237_942_123));
        assert_eq!((event.account.as_deref(), event.subject.as_deref()), (Some("a1"), Some("402")));
        assert_eq!(event.payload, EVENT);
    }

    #[test]
    fn conveniences_in_an_unknown_form_are_left_out() {
        for payload in ["null", "[]", "{}", r#"{"account_id":[],"object":7}"#] {
            let event = trial().read_one(&format!(r#"{{"event":"a","event_ts":-1,"payload":{payload}}}"#));
            assert_eq!(
                (event.occurred_at_unix_ms, event.account, event.subject),
                (None, None, None),
                "{payload}"
            );
        }
        let event = trial().read_one(r#"{"event":"a","payload":{"object":{"uuid":"u=="}}}"#);
        assert_eq!(event.subject.as_deref(), Some("u=="));
    }

    #[test]
    fn a_retry_at_another_time_carries_the_same_payload() {
        let retry = trial().signed_at(NOW + 300, Outgoing::post(URL, MEDIA_TYPE, EVENT));
        assert_eq!(trial().verify(retry).unwrap().events, [trial().read_one(EVENT)]);
    }

    #[test]
    fn the_validation_is_answered_with_the_secret_that_signed_it() {
        let body = r#"{"payload":{"plainToken":"qgg8-_"},"event":"endpoint.url_validation"}"#;
        let digest = hex::encode(hmac_sha256(SECRET.as_bytes(), &[b"qgg8-_"]));
        let expected = format!(r#"{{"plainToken":"qgg8-_","encryptedToken":"{digest}"}}"#);
        for secrets in [[SECRET, "another-secret"], ["another-secret", SECRET]] {
            let verified = trial().with_secrets(&secrets).verify(trial().signed(body));
            assert_eq!(verified, Ok(Verified::handshake(Answer::json(expected.clone()))));
        }
        let unsigned = Outgoing::post(URL, MEDIA_TYPE, body);
        assert_eq!(trial().reason(unsigned), Some("signature_missing"));
    }

    #[test]
    fn signed_bodies_that_are_no_events_are_unreadable() {
        for body in [
            "",
            "[]",
            "{}",
            r#"{"event":""}"#,
            r#"{"event":7}"#,
            r#"{"event":"a","event":"a"}"#,
            r#"{"event":"endpoint.url_validation"}"#,
            r#"{"event":"endpoint.url_validation","payload":{"plainToken":""}}"#,
            r#"{"event":"endpoint.url_validation","payload":{"plainToken":"v0:1767237945:{}"}}"#,
            r#"{"event":"endpoint.url_validation","payload":{"plainToken":"a\"b"}}"#,
        ] {
            assert_eq!(trial().reason(trial().signed(body)), Some("unreadable_body"), "{body}");
        }
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        trial().assert_flips_are_refused(&trial().signed(EVENT), &[SIGNATURE_HEADER, TIMESTAMP_HEADER]);
    }
}
