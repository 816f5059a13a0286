//! Twilio SendGrid: the Event Webhook with its signature (Signed Event Webhook).
//!
//! The scheme is that of @sendgrid/eventwebhook 8.0.0: ECDSA on P-256 with SHA-256 over `timestamp body`, DER in base64.
//! The secret is the public key as the dashboard shows it, base64 of a `SubjectPublicKeyInfo`. The body ends with CR LF,
//! which is signed like the rest.

use crate::{
    Context, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, items, json_text},
    event::{event_type_or_unknown, unix_ms_from_seconds},
    public_key::P256Key,
    signature::{decode_base64_bytes, parse_unix_seconds, require_fresh},
};

/// Header that carries the signature, base64 of a DER sequence.
pub const SIGNATURE_HEADER: &str = "x-twilio-email-event-webhook-signature";
/// Header that carries the signed time, seconds since 1970.
pub const TIMESTAMP_HEADER: &str = "x-twilio-email-event-webhook-timestamp";
/// SendGrid repeats a request for a day, perhaps with the time and the signature of the first one, so a day and an hour
/// has to be tolerated.
pub const TOLERANCE_SECONDS: u64 = 25 * 3600;

const NAME: &str = "sendgrid";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";

/// The provider `sendgrid`.
#[derive(Debug, Clone, Copy)]
pub struct SendGrid;

impl Provider for SendGrid {
    fn name(&self) -> &'static str {
        NAME
    }

    fn default_tolerance_seconds(&self) -> u64 {
        TOLERANCE_SECONDS
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method(METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        verify_signature(request, settings, context)?;
        let events = items(json_text(request.body)?)?;
        Ok(Verified::new(events.into_iter().map(read_event).collect()))
    }
}

fn verify_signature(
    request: &Request<'_>,
    settings: &Settings,
    context: &Context<'_>,
) -> Result<(), Rejection> {
    let read_key = |text: &str| P256Key::from_der(&decode_base64_bytes(text)?);
    let keys: Vec<P256Key> = settings.secrets.iter().filter_map(|secret| read_key(secret.expose())).collect();
    if keys.is_empty() {
        return Err(Rejection::NoSecret);
    }
    let signature = request.headers.signature(SIGNATURE_HEADER)?;
    let timestamp = request.headers.signature(TIMESTAMP_HEADER)?;
    let signature = decode_base64_bytes(signature).ok_or(Rejection::SignatureMalformed("not base64"))?;
    // One spelling per time also keeps the border between time and body where it was signed.
    let timestamp_unix = parse_unix_seconds(timestamp)
        .ok_or(Rejection::SignatureMalformed("the time is not a number of seconds"))?;
    let message = [timestamp.as_bytes(), request.body].concat();
    if !keys.iter().any(|key| key.has_signed_der(context.verifier, &message, &signature)) {
        return Err(Rejection::SignatureMismatch);
    }
    require_fresh(timestamp_unix, context.now_unix, settings.tolerance_seconds)
}

/// One item of the array. Whatever it is, it becomes an event, because one odd item must not hide the others.
fn read_event(item: &str) -> VerifiedEvent<'_> {
    let fields = Fields::read(item, &["sg_event_id", "event", "timestamp", "sg_message_id"]).ok();
    let text = |name| fields.as_ref().and_then(|fields| fields.short_text(name));
    let event: Option<String> = fields.as_ref().and_then(|fields| fields.lenient("event"));
    let seconds = fields.as_ref().and_then(|fields| fields.lenient::<i64>("timestamp"));
    VerifiedEvent {
        id: text("sg_event_id"),
        event_type: event_type_or_unknown(NAME, event.as_deref()),
        occurred_at_unix_ms: seconds.and_then(unix_ms_from_seconds),
        subject: text("sg_message_id"),
        payload: item.into(),
        ..VerifiedEvent::default()
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
    use p256::ecdsa::{DerSignature, SigningKey, signature::Signer as _};

    use super::*;
    use crate::{Headers, Secrets};

    const NOW: i64 = 1_767_226_266;

    fn key(byte: u8) -> SigningKey {
        SigningKey::from_slice(&[byte; 32]).unwrap()
    }

    fn secret(byte: u8) -> String {
        // What stands before the point in every `SubjectPublicKeyInfo` of this curve (RFC 5480).
        let der = hex::decode("3059301306072a8648ce3d020106082a8648ce3d030107034200").unwrap();
        BASE64.encode([der.as_slice(), key(byte).verifying_key().to_sec1_point(false).as_bytes()].concat())
    }

    fn sign(timestamp: &str, body: &[u8]) -> DerSignature {
        key(7).sign(&[timestamp.as_bytes(), body].concat())
    }

    fn verify<'a>(
        signature: &[u8],
        timestamp: &str,
        body: &'a [u8],
        keys: &[String],
    ) -> Result<Verified<'a>, Rejection> {
        let headers = Headers::from_iter([
            (SIGNATURE_HEADER, BASE64.encode(signature)),
            (TIMESTAMP_HEADER, timestamp.to_owned()),
        ]);
        let headers = Box::leak(Box::new(headers));
        let settings = Settings::new(&SendGrid, Secrets::from_list(keys));
        SendGrid.verify(&Request { method: METHOD, url: "", headers, body }, &settings, &Context::at(NOW))
    }

    fn read(body: &str) -> Result<Verified<'_>, Rejection> {
        let timestamp = NOW.to_string();
        verify(sign(&timestamp, body.as_bytes()).as_bytes(), &timestamp, body.as_bytes(), &[secret(7)])
    }

    #[test]
    fn each_item_becomes_an_event_and_none_hides_another() {
        let body = "[{\"sg_event_id\":\"a==\",\"event\":\"open\",\"timestamp\":1767226264,\"sg_message_id\":\"m.1\"},\r\n\
            {\"sg_event_id\":7}, null ,{\"sg_event_id\":\"b\",\"sg_event_id\":\"c\",\"event\":\"click\"}]\r\n";
        let events = read(body).unwrap().events;
        let seen: Vec<_> = events
            .iter()
            .map(|event| (event.id.as_deref(), event.event_type.as_str(), event.payload.as_ref()))
            .collect();
        assert_eq!(
            seen,
            [
                (
                    Some("a=="),
                    "sendgrid.open",
                    r#"{"sg_event_id":"a==","event":"open","timestamp":1767226264,"sg_message_id":"m.1"}"#
                ),
                (None, "sendgrid.unknown", r#"{"sg_event_id":7}"#),
                (None, "sendgrid.unknown", "null"),
                (None, "sendgrid.unknown", r#"{"sg_event_id":"b","sg_event_id":"c","event":"click"}"#),
            ]
        );
        assert_eq!(events[0].occurred_at_unix_ms, Some(1_767_226_264_000));
        assert_eq!(events[0].subject.as_deref(), Some("m.1"));
        assert_eq!(read("[]").unwrap().events, []);
    }

    #[test]
    fn every_flipped_bit_of_the_body_is_refused() {
        let timestamp = NOW.to_string();
        let body = br#"[{"event":"open"}]"#;
        let signature = sign(&timestamp, body);
        for bit in 0..body.len() * 8 {
            let mut flipped = body.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let refused = verify(signature.as_bytes(), &timestamp, Box::leak(flipped.into()), &[secret(7)]);
            assert_eq!(refused.map(|_| ()), Err(Rejection::SignatureMismatch), "{bit}");
        }
        for bit in 0..signature.as_bytes().len() * 8 {
            let mut flipped = signature.as_bytes().to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(verify(&flipped, &timestamp, body, &[secret(7)]).is_err(), "{bit}");
        }
    }

    #[test]
    fn any_key_may_have_signed_and_what_is_no_key_is_passed_over() {
        let timestamp = NOW.to_string();
        let signature = sign(&timestamp, b"[]");
        let no_key = "abcdef".to_owned();
        for (keys, reason) in [
            (vec![secret(7), secret(8)], None),
            (vec![secret(8), no_key.clone(), secret(7)], None),
            (vec![secret(8)], Some("signature_mismatch")),
            (vec![no_key], Some("no_secret")),
            (vec![], Some("no_secret")),
        ] {
            let verdict = verify(signature.as_bytes(), &timestamp, b"[]", &keys);
            assert_eq!(verdict.err().map(|rejection| rejection.reason()), reason, "{keys:?}");
        }
    }

    #[test]
    fn headers_are_read_strictly() {
        let body = b"[]";
        for (timestamp, reason) in [
            ("abc", Some("signature_malformed")),
            ("", Some("signature_malformed")),
            ("1767226266[", Some("signature_malformed")),
            ("1767136266", None),
            ("1767136265", Some("signature_stale")),
            ("1767316267", Some("signature_stale")),
        ] {
            let signature = sign(timestamp, body);
            let verdict = verify(signature.as_bytes(), timestamp, body, &[secret(7)]);
            assert_eq!(verdict.err().map(|rejection| rejection.reason()), reason, "{timestamp}");
        }
    }

    #[test]
    fn a_signed_body_that_is_no_array_is_unreadable() {
        for body in ["", "{}", "[", "[]x"] {
            assert_eq!(read(body).map_err(|rejection| rejection.status()).map(|_| ()), Err(400), "{body}");
        }
    }
}
