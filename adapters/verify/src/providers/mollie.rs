//! Mollie's next-gen webhooks: one HMAC-SHA256 over the body, in a header that comes twice while a secret is rotated.
//!
//! The scheme is that of mollie-api-php (`src/Webhooks/SignatureValidator.php`); the fields are those of the same SDK
//! (`WebhookEventMapper`) and of docs.mollie.com (next-gen webhooks). Classic webhooks are not signed and are refused.

use crate::{
    Answer, Context, Headers, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{required_event_type, unix_ms_from_rfc3339},
    signature::{SHA256_PREFIX, decode_hex_lower, hmac_sha256, hub_signature, require_match},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-mollie-signature";
/// Type of the event that only tries the endpoint.
pub const PING_TYPE: &str = "hook.ping";

const NAME: &str = "mollie";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const EVENT_FIELDS: &[&str] = &["id", "type", "entityId", "createdAt", "_embedded"];

/// The provider `mollie`.
#[derive(Debug, Clone, Copy)]
pub struct Mollie;

impl Provider for Mollie {
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
        settings.require_secrets()?;
        require_match(&settings.secrets, &signatures(request.headers)?, |secret| {
            hmac_sha256(secret.expose().as_bytes(), &[request.body])
        })?;
        read_event(request.body)
    }
}

/// Signs as Mollie does. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let signature = hub_signature(secret, &request.body);
    request.with_header(SIGNATURE_HEADER, signature)
}

/// The signatures of all headers of that name. For 24 hours after a rotation there are two, which may arrive as one header
/// with a comma; one that is no digest can never fit and is passed over. `sha256=` is optional, as in the SDK.
fn signatures(headers: &Headers) -> Result<Vec<[u8; 32]>, Rejection> {
    let mut is_missing = true;
    let mut signatures = Vec::new();
    for value in headers.all(SIGNATURE_HEADER) {
        is_missing = false;
        let items = value.split(',').map(|item| item.trim_matches(' '));
        signatures.extend(
            items.filter_map(|item| decode_hex_lower::<32>(item.strip_prefix(SHA256_PREFIX).unwrap_or(item))),
        );
    }
    match (is_missing, signatures.is_empty()) {
        (true, _) => Err(Rejection::SignatureMissing),
        (_, true) => Err(Rejection::SignatureMalformed("no digest in lower-case hex")),
        _ => Ok(signatures),
    }
}

fn read_event(body: &[u8]) -> Result<Verified<'_>, Rejection> {
    let payload = json_text(body)?;
    let fields = Fields::read(payload, EVENT_FIELDS)?;
    let answer = Answer::empty(200);
    if fields.lenient::<String>("type").as_deref() == Some(PING_TYPE) {
        return Ok(Verified::handshake(answer));
    }
    let entity =
        fields.object("_embedded", &["entity"]).and_then(|embedded| embedded.object("entity", &["mode"]));
    let mode: Option<String> = entity.and_then(|entity| entity.lenient("mode"));
    let created_at: Option<String> = fields.lenient("createdAt");
    let event = VerifiedEvent {
        id: fields.id("id")?,
        event_type: required_event_type(NAME, &fields, "type")?,
        occurred_at_unix_ms: created_at.as_deref().and_then(unix_ms_from_rfc3339),
        livemode: match mode.as_deref() {
            Some("live") => Some(true),
            Some("test") => Some(false),
            _ => None,
        },
        subject: fields.short_text("entityId"),
        payload: payload.into(),
        ..VerifiedEvent::default()
    };
    Ok(Verified::new(vec![event]).with_answer(answer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, SECRET, assert_conventions, event, events, outcome};

    const BODY: &str = r#"{"resource":"event","id":"event_yQ4z","type":"payment-link.paid","entityId":"pl_SOnb",
        "createdAt":"2026-01-01T00:00:00.0Z","_embedded":{"entity":{"id":"pl_SOnb","mode":"test"}}}"#;

    #[test]
    fn what_fields_become() {
        let verified = Arriving::signed(&Mollie, BODY).verified(&Mollie);
        assert_eq!(verified.answer, Some(Answer::empty(200)));
        let event = &verified.events[0];
        assert_eq!(event.id.as_deref(), Some("event_yQ4z"));
        assert_eq!(event.event_type, "mollie.payment-link.paid");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_225_600_000));
        assert_eq!((event.subject.as_deref(), event.livemode), (Some("pl_SOnb"), Some(false)));
        assert_eq!(event.payload, BODY);
    }

    #[test]
    fn conveniences_are_left_out_and_a_type_is_required() {
        let odd =
            event(&Mollie, r#"{"type":"a","entityId":7,"createdAt":"x","_embedded":{"entity":{"mode":1}}}"#);
        assert_eq!((odd.id, odd.subject, odd.occurred_at_unix_ms, odd.livemode), (None, None, None, None));
        for body in ["", "[]", "{}", r#"{"type":""}"#, r#"{"type":"a","id":7}"#, r#"{"type":"a","id":"a b"}"#]
        {
            assert_eq!(outcome(&Mollie, body), "unreadable_body", "{body}");
        }
        assert!(events(&Mollie, r#"{"id":"event_1","type":"hook.ping","entityId":"hook_1"}"#).is_empty());
    }

    #[test]
    fn a_retry_is_the_same_fact_and_another_event_is_not() {
        let identity = |body: &str| {
            let event = event(&Mollie, body);
            (event.id, event.fact)
        };
        assert_eq!(identity(BODY), identity(BODY));
        assert_ne!(identity(BODY), identity(&BODY.replace("event_yQ4z", "event_yQ5z")));
    }

    /// The outcome with these values of the header, in which `{}` is the right digest.
    fn with_values(values: &[&str]) -> &'static str {
        let mut request = Arriving::signed(&Mollie, BODY);
        let signature = request.headers.pop().unwrap().1;
        let digest = signature.strip_prefix(SHA256_PREFIX).unwrap();
        request.headers.extend(values.iter().map(|value| (SIGNATURE_HEADER, value.replace("{}", digest))));
        request.outcome(&Mollie)
    }

    #[test]
    fn any_signature_may_match_and_each_is_read_strictly() {
        let other = "0".repeat(64);
        let (before, after) = (format!("sha256={other}, sha256={{}}"), format!("sha256={{}},sha256={other}"));
        for values in
            [&["sha256={}"][..], &["{}"], &[&before], &[&after], &["sha256=x", "sha256={}"], &["a,{}"]]
        {
            assert_eq!(with_values(values), "accept", "{values:?}");
        }
        assert_eq!(with_values(&[]), "signature_missing");
        assert_eq!(with_values(&[&other]), "signature_mismatch");
        for value in
            ["", ",", "sha256=", "sha1={}", "SHA256={}", "sha256={}0", "sha256=sha256={}", "{}{}", "{}\n"]
        {
            assert_eq!(with_values(&[value]), "signature_malformed", "{value:?}");
        }
    }

    #[test]
    fn every_bit_is_signed() {
        let good = Arriving::signed(&Mollie, BODY);
        for bit in 0..BODY.len() * 8 {
            let mut changed = good.clone();
            changed.body[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(changed.outcome(&Mollie), "signature_mismatch", "bit {bit}");
        }
        assert_eq!(with_values(&[&hub_signature(SECRET, b"another body")]), "signature_mismatch");
        assert_conventions(&Mollie, BODY);
    }
}
