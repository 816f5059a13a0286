//! Linear: one signed JSON object per request, with its time inside.
//!
//! The scheme is that of @linear/sdk 98.0.0 (`webhooks`): lower-case hex of HMAC-SHA256 over the body, and
//! `webhookTimestamp` in the body within a minute of the clock. The header `Linear-Timestamp` is not signed and not read.

use crate::{
    Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{is_short_text, platform_event_type},
    signature::{decode_hex_lower, hmac_sha256, parse_unix_seconds, require_fresh_ms, require_hmac_sha256},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "linear-signature";
/// Header that carries the id of the delivery. It is not signed.
pub const DELIVERY_HEADER: &str = "linear-delivery";
/// Field of the body with the signed time, milliseconds since 1970.
pub const TIMESTAMP_FIELD: &str = "webhookTimestamp";

const NAME: &str = "linear";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
/// What the SDK allows, in seconds.
const TOLERANCE_SECONDS: u64 = 60;
const EVENT_FIELDS: &[&str] =
    &["type", "action", "createdAt", "organizationId", "webhookId", "data", TIMESTAMP_FIELD];

/// The provider `linear`.
#[derive(Debug, Clone, Copy)]
pub struct Linear;

impl Provider for Linear {
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
        settings.require_secrets()?;
        let signature = decode_hex_lower(request.headers.signature(SIGNATURE_HEADER)?);
        let signature = signature.ok_or(Rejection::SignatureMalformed("not 64 lower-case hex digits"))?;
        require_hmac_sha256(&settings.secrets, &signature, &[request.body])?;
        let payload = json_text(request.body)?;
        let fields = Fields::read(payload, EVENT_FIELDS)?;
        // Milliseconds have the same one spelling as seconds.
        let signed_unix_ms = fields.raw(TIMESTAMP_FIELD).and_then(parse_unix_seconds);
        let signed_unix_ms = signed_unix_ms
            .ok_or(Rejection::SignatureMalformed("webhookTimestamp is not a count of milliseconds"))?;
        require_fresh_ms(signed_unix_ms, context.now_unix, settings.tolerance_seconds)?;
        Ok(Verified::new(vec![read_event(request, payload, &fields)?]))
    }
}

fn read_event<'a>(
    request: &Request<'a>,
    payload: &'a str,
    fields: &Fields<'a>,
) -> Result<VerifiedEvent<'a>, Rejection> {
    let id = request.headers.field(DELIVERY_HEADER)?;
    if id.is_some_and(|id| !is_short_text(id)) {
        return Err(Rejection::Unreadable("the id of the delivery is not one"));
    }
    let linear_type: String = fields.value("type")?.ok_or(Rejection::Unreadable("no type"))?;
    let subject = fields.object("data", &["id"]).and_then(|data| data.text_or_number("id"));
    Ok(VerifiedEvent {
        id: id.map(str::to_owned),
        is_id_unsigned: true,
        fact: fact(&linear_type, fields, subject.as_deref()),
        event_type: platform_event_type(NAME, &linear_type)
            .ok_or(Rejection::Unreadable("the type is empty or too long"))?,
        occurred_at_unix_ms: fields.time_in_rfc3339("createdAt"),
        account: fields.text_or_number("organizationId"),
        subject,
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

/// What is signed of the identity, since the id is not. A retry carries another `webhookTimestamp`, so not the whole body
/// belongs to it. Empty when the body does not say when the change was made, and the payload stands in.
fn fact(linear_type: &str, fields: &Fields<'_>, subject: Option<&str>) -> Vec<String> {
    let Some(created_at) = fields.text_or_number("createdAt") else {
        return Vec::new();
    };
    let text = |name| fields.text_or_number(name).unwrap_or_default();
    let subject = subject.unwrap_or_default().to_owned();
    vec![text("webhookId"), linear_type.to_owned(), text("action"), created_at, subject]
}

/// Signs as Linear does. A JSON object without `webhookTimestamp` gets one first.
#[must_use]
pub fn sign(mut request: Outgoing, secret: &str, now_unix: i64) -> Outgoing {
    if let Some(body) = with_timestamp(&request.body, now_unix) {
        request.body = body.into_bytes();
    }
    let digest = hmac_sha256(secret.as_bytes(), &[&request.body]);
    request.with_header(SIGNATURE_HEADER, hex::encode(digest))
}

fn with_timestamp(body: &[u8], now_unix: i64) -> Option<String> {
    let text = json_text(body).ok()?;
    let fields = Fields::read(text, &[TIMESTAMP_FIELD]).ok()?;
    if fields.raw(TIMESTAMP_FIELD).is_some() {
        return None;
    }
    let members = text.strip_prefix('{')?.trim_start();
    let separator = if members.starts_with('}') { "" } else { "," };
    Some(format!(r#"{{"{TIMESTAMP_FIELD}":{now_unix}000{separator}{members}"#))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::trial::{NOW, Trial, URL};

    const EVENT: &str = r#"{"action":"create","type":"Issue","createdAt":"2026-01-01T03:25:42.123Z",
        "organizationId":"o-1","webhookId":"w-1","data":{"id":"i-1","n":1.0},"webhookTimestamp":1767237945000}"#;

    fn trial() -> Trial {
        Trial::of(NAME)
    }

    fn at(webhook_timestamp: &str) -> Outgoing {
        trial().signed(&EVENT.replace("1767237945000", webhook_timestamp))
    }

    #[test]
    fn an_event_is_read_in_full() {
        let request = trial().signed(EVENT).with_header(DELIVERY_HEADER, "d-1");
        let event = trial().verify(request).unwrap().events.remove(0);
        assert_eq!(event.id.as_deref(), Some("d-1"));
        assert_eq!(event.fact, ["w-1", "Issue", "create", "2026-01-01T03:25:42.123Z", "i-1"]);
        assert_eq!(event.event_type, "linear.issue");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_237_942_123));
        assert_eq!((event.account.as_deref(), event.subject.as_deref()), (Some("o-1"), Some("i-1")));
        assert_eq!(event.payload, EVENT);
        assert_eq!(trial().read_one(EVENT).id, None);
    }

    #[test]
    fn a_retry_has_the_same_identity_and_another_change_another_one() {
        let fact = |request: Outgoing| trial().verify(request).unwrap().events.remove(0).fact;
        let first = fact(at("1767237945000"));
        assert_eq!(fact(at("1767237944000")), first);
        for (from, to) in
            [("w-1", "w-2"), ("Issue", "Project"), ("create", "update"), (".123", ".124"), ("i-1", "i-2")]
        {
            assert_ne!(fact(trial().signed(&EVENT.replace(from, to))), first, "{from}");
        }
        assert_eq!(trial().read_one(r#"{"type":"Issue","action":"create"}"#).fact, [""; 0]);
    }

    #[test]
    fn the_time_is_in_the_body() {
        for (time, reason) in [
            ("1767237885000", None),
            ("1767238005000", None),
            ("1767237884999", Some("signature_stale")),
            ("1767238005001", Some("signature_stale")),
            ("1767237945", Some("signature_stale")),
            (r#""1767237945000""#, Some("signature_malformed")),
            ("1767237945000.0", Some("signature_malformed")),
            ("-1", Some("signature_malformed")),
        ] {
            assert_eq!(trial().reason(at(time)), reason, "{time}");
        }
        // Signed by hand, because `sign` adds a time that is missing.
        for body in ["{}", r#"{"webhookTimestamp":null}"#] {
            let digest = hmac_sha256(crate::testing::trial::SECRET.as_bytes(), &[body.as_bytes()]);
            let request =
                Outgoing::post(URL, MEDIA_TYPE, body).with_header(SIGNATURE_HEADER, hex::encode(digest));
            assert_eq!(trial().reason(request), Some("signature_malformed"), "{body}");
        }
    }

    #[test]
    fn signing_adds_a_missing_time() {
        for (body, signed) in [
            ("{}", r#"{"webhookTimestamp":1767237945000}"#),
            (r#" { "type":"a"} "#, r#"{"webhookTimestamp":1767237945000,"type":"a"}"#),
            (r#"{"webhookTimestamp":1}"#, r#"{"webhookTimestamp":1}"#),
            ("[]", "[]"),
        ] {
            let request = sign(Outgoing::post(URL, MEDIA_TYPE, body), "s", NOW);
            assert_eq!(String::from_utf8(request.body).unwrap(), signed);
        }
    }

    #[test]
    fn signed_bodies_that_are_no_events_are_unreadable() {
        for body in ["", "[]", "{}", r#"{"type":""}"#, r#"{"type":7}"#, r#"{"type":"a","type":"a"}"#] {
            assert_eq!(trial().reason(trial().signed(body)), Some("unreadable_body"), "{body}");
        }
        for id in ["", "a b", &"a".repeat(201)] {
            let request = trial().signed(EVENT).with_header(DELIVERY_HEADER, id);
            assert_eq!(trial().reason(request), Some("unreadable_body"), "{id}");
        }
        let twice = trial().signed(EVENT).with_header(DELIVERY_HEADER, "a").with_header(DELIVERY_HEADER, "a");
        assert_eq!(trial().reason(twice), Some("unreadable_body"));
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        trial().assert_flips_are_refused(&trial().signed(EVENT), &[SIGNATURE_HEADER]);
    }
}
