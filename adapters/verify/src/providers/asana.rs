//! Asana: batches of events, heartbeats, and the handshake that hands over the secret.
//!
//! There is no SDK that verifies. The scheme is that of Asana's guide (developers.asana.com/docs/webhooks-guide): lower-case
//! hex of HMAC-SHA256 over the body. The handshake cannot be verified, because it is what brings the secret; it is
//! answered only while somebody has opened the endpoint for it.

use crate::{
    Answer, Context, Outgoing, Provider, ProviderOption, Rejection, Request, Settings, Verified,
    VerifiedEvent,
    body::{Fields, items, json_text},
    event::{event_type_or_unknown, is_short_text},
    signature::{decode_hex_lower, hmac_sha256, require_hmac_sha256},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-hook-signature";
/// Header of the handshake, with the secret of a new webhook. The answer has to bring it back.
pub const SECRET_HEADER: &str = "x-hook-secret";
/// Option that opens the endpoint for a handshake, and its value.
pub const HANDSHAKE_OPTION: &str = "handshake";
/// See [`HANDSHAKE_OPTION`].
pub const HANDSHAKE_OPEN: &str = "open";

const NAME: &str = "asana";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const EVENT_FIELDS: &[&str] = &["action", "created_at", "resource"];
const RESOURCE_FIELDS: &[&str] = &["gid", "resource_type"];

/// The provider `asana`.
#[derive(Debug, Clone, Copy)]
pub struct Asana;

impl Provider for Asana {
    fn name(&self) -> &'static str {
        NAME
    }

    fn options(&self) -> &'static [ProviderOption] {
        &[ProviderOption {
            name: HANDSHAKE_OPTION,
            is_required: false,
            help: "set it to `open` while creating the webhook, then save the secret of the answer \
                   (X-Hook-Secret) as the endpoint's secret and remove it",
        }]
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        _context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method(METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        if is_handshake(request) {
            return answer_handshake(request, settings).map(Verified::handshake);
        }
        settings.require_secrets()?;
        let signature = decode_hex_lower(request.headers.signature(SIGNATURE_HEADER)?);
        let signature = signature.ok_or(Rejection::SignatureMalformed("not 64 lower-case hex digits"))?;
        require_hmac_sha256(&settings.secrets, &signature, &[request.body])?;
        read_events(request.body).map(Verified::new)
    }
}

/// A request that is signed is never a handshake, whatever else was added to it on the way.
fn is_handshake(request: &Request<'_>) -> bool {
    let has = |name| request.headers.all(name).next().is_some();
    has(SECRET_HEADER) && !has(SIGNATURE_HEADER)
}

/// Gives the secret back to whoever sent it. Nothing is kept of it here, and it is in no log.
fn answer_handshake(request: &Request<'_>, settings: &Settings) -> Result<Answer, Rejection> {
    if settings.option(HANDSHAKE_OPTION) != Some(HANDSHAKE_OPEN) {
        return Err(Rejection::HandshakeRefused);
    }
    let secret = request.headers.signature(SECRET_HEADER)?;
    if !is_short_text(secret) {
        return Err(Rejection::SignatureMalformed("the secret of the handshake is not a short text"));
    }
    let mut answer = Answer::empty(200);
    answer.headers.push((SECRET_HEADER, secret.to_owned()));
    Ok(answer)
}

/// All events of a request; a heartbeat has none. Since it is signed, one without a body or without the list counts too:
/// Asana drops a webhook whose heartbeats are refused.
fn read_events(body: &[u8]) -> Result<Vec<VerifiedEvent<'_>>, Rejection> {
    let text = json_text(body)?;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let Some(events) = Fields::read(text, &["events"])?.raw("events") else {
        return Ok(Vec::new());
    };
    Ok(items(events)?.into_iter().map(read_event).collect())
}

/// One event. It has no id, and nothing in it but its text tells it from another one, so the payload is its identity.
fn read_event(payload: &str) -> VerifiedEvent<'_> {
    let fields = Fields::read(payload, EVENT_FIELDS).ok();
    let resource = fields.as_ref().and_then(|fields| fields.object("resource", RESOURCE_FIELDS));
    let kind = resource.as_ref().and_then(|resource| resource.text_or_number("resource_type"));
    let action = fields.as_ref().and_then(|fields| fields.text_or_number("action"));
    let asana_type = kind.zip(action).map(|(kind, action)| [&kind, ".", &action].concat());
    VerifiedEvent {
        event_type: event_type_or_unknown(NAME, asana_type.as_deref()),
        occurred_at_unix_ms: fields.and_then(|fields| fields.time_in_rfc3339("created_at")),
        subject: resource.and_then(|resource| resource.text_or_number("gid")),
        payload: payload.into(),
        ..VerifiedEvent::default()
    }
}

/// Signs as Asana does.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let digest = hmac_sha256(secret.as_bytes(), &[&request.body]);
    request.with_header(SIGNATURE_HEADER, hex::encode(digest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::trial::{Trial, URL};

    const EVENT: &str = r#"{"user":{"gid":"1"},"created_at":"2026-01-01T03:25:42.123Z","action":"changed",
        "resource":{"gid":"73","resource_type":"task"},"change":{"field":"name"}}"#;

    fn trial() -> Trial {
        Trial::of(NAME)
    }

    fn batch(events: &[&str]) -> String {
        format!(r#"{{"events": [ {} ]}}"#, events.join(" ,\n"))
    }

    fn handshake(secret: &str) -> Outgoing {
        Outgoing::post(URL, MEDIA_TYPE, "{}").with_header(SECRET_HEADER, secret)
    }

    #[test]
    fn an_event_is_read_in_full() {
        let event = trial().read_one(&batch(&[EVENT]));
        assert_eq!((event.id, event.fact), (None, vec![]), "the payload is the identity");
        assert_eq!(event.event_type, "asana.task.changed");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_237_942_123));
        assert_eq!((event.account, event.subject.as_deref()), (None, Some("73")));
        assert_eq!(event.payload, EVENT);
    }

    #[test]
    fn one_bad_item_does_not_hide_the_others() {
        let bad = ["null", "{}", r#"{"action":"a","action":"b"}"#, r#"{"action":"added","resource":null}"#];
        let events = trial().read(&batch(&[bad[0], bad[1], EVENT, bad[2], bad[3]])).unwrap();
        let found: Vec<_> = events.iter().map(|event| (event.event_type.as_str(), &*event.payload)).collect();
        let unknown = "asana.unknown";
        let expected = [
            (unknown, bad[0]),
            (unknown, bad[1]),
            ("asana.task.changed", EVENT),
            (unknown, bad[2]),
            (unknown, bad[3]),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_retry_that_is_batched_anew_carries_the_same_payloads() {
        let other = EVENT.replace(".123", ".124");
        let first = trial().read(&batch(&[EVENT, &other])).unwrap();
        let retry = [trial().read_one(&batch(&[EVENT])), trial().read_one(&batch(&[&other]))];
        assert_eq!(first, retry);
        assert_ne!(retry[0].payload, retry[1].payload);
    }

    #[test]
    fn heartbeats_bring_no_event() {
        for body in ["", "{}", r#"{"events":[]}"#, r#"{"events":null}"#] {
            assert_eq!(trial().verify(trial().signed(body)), Ok(Verified::new(vec![])), "{body}");
            assert_eq!(
                trial().reason(Outgoing::post(URL, MEDIA_TYPE, body)),
                Some("signature_missing"),
                "{body}"
            );
        }
        for body in ["[]", "1", r#"{"events":{}}"#, r#"{"events":[],"events":[]}"#] {
            assert_eq!(trial().reason(trial().signed(body)), Some("unreadable_body"), "{body}");
        }
    }

    #[test]
    fn a_handshake_is_answered_while_the_endpoint_is_open() {
        let mut answer = Answer::empty(200);
        answer.headers.push((SECRET_HEADER, "5144d0b5".to_owned()));
        let open = trial().with_option(HANDSHAKE_OPTION, HANDSHAKE_OPEN);
        assert_eq!(open.verify(handshake("5144d0b5")), Ok(Verified::handshake(answer.clone())));
        let open_without_secret = open.with_secrets(&[]);
        assert_eq!(open_without_secret.verify(handshake("5144d0b5")), Ok(Verified::handshake(answer)));
        assert_eq!(open_without_secret.reason(trial().signed("{}")), Some("no_secret"));
        for secret in ["", "a b", "a\r\nx: y", "é", &"a".repeat(201)] {
            assert_eq!(
                open_without_secret.reason(handshake(secret)),
                Some("signature_malformed"),
                "{secret:?}"
            );
        }
        let twice = handshake("a").with_header(SECRET_HEADER, "a");
        assert_eq!(open_without_secret.reason(twice), Some("signature_malformed"));
    }

    #[test]
    fn a_closed_endpoint_takes_no_handshake() {
        for secrets in [&[][..], &["a-secret"]] {
            let closed = trial().with_secrets(secrets);
            assert_eq!(closed.reason(handshake("a")), Some("handshake_refused"));
        }
        let other_value = trial().with_option(HANDSHAKE_OPTION, "closed");
        assert_eq!(other_value.reason(handshake("a")), Some("handshake_refused"));
    }

    #[test]
    fn a_signed_request_is_never_a_handshake() {
        let open = trial().with_option(HANDSHAKE_OPTION, HANDSHAKE_OPEN);
        let request = trial().signed(&batch(&[EVENT])).with_header(SECRET_HEADER, "a");
        assert_eq!(open.verify(request).unwrap().events.len(), 1);
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        trial().assert_flips_are_refused(&trial().signed(&batch(&[EVENT])), &[SIGNATURE_HEADER]);
    }
}
