//! Intercom: one HMAC-SHA1 over the body, a HEAD request before the URL is taken, and a ping.
//!
//! The scheme is the one of developers.intercom.com/docs/webhooks (signed notifications), which third parties implement
//! alike; there is no SDK that verifies. The fields are those of the same pages.

use crate::{
    Answer, Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{required_event_type, unix_ms_from_seconds},
    signature::{decode_hex_lower, hmac_sha1, require_match, sha256_hex},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-hub-signature";
/// What stands before the digest in the header.
pub const SIGNATURE_PREFIX: &str = "sha1=";
/// Topic of the notification that only tries the endpoint.
pub const PING_TOPIC: &str = "ping";

const NAME: &str = "intercom";
const METHOD: &str = "POST";
const PROBE_METHOD: &str = "HEAD";
const MEDIA_TYPE: &str = "application/json";
const EVENT_FIELDS: &[&str] = &["id", "topic", "app_id", "created_at", "data"];

/// The provider `intercom`.
#[derive(Debug, Clone, Copy)]
pub struct Intercom;

impl Provider for Intercom {
    fn name(&self) -> &'static str {
        NAME
    }

    fn methods(&self) -> &'static [&'static str] {
        &[METHOD, PROBE_METHOD]
    }

    /// A HEAD request cannot be signed. It is told that the URL is there, which anybody may know, and makes no event.
    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        _context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        if request.method == PROBE_METHOD {
            settings.require_secrets()?;
            return Ok(Verified::handshake(Answer::empty(200)));
        }
        request.require_method(METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        verify_signature(request, settings)?;
        read_notification(request.body)
    }
}

fn verify_signature(request: &Request<'_>, settings: &Settings) -> Result<(), Rejection> {
    settings.require_secrets()?;
    let header = request.headers.signature(SIGNATURE_HEADER)?;
    let signature = header
        .strip_prefix(SIGNATURE_PREFIX)
        .and_then(decode_hex_lower::<20>)
        .ok_or(Rejection::SignatureMalformed("not sha1= and one digest in hex"))?;
    require_match(&settings.secrets, &[signature], |secret| {
        hmac_sha1(secret.expose().as_bytes(), &[request.body])
    })
}

/// Signs as Intercom does. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let digest = hmac_sha1(secret.as_bytes(), &[&request.body]);
    let signature = [SIGNATURE_PREFIX, &hex::encode(digest)].concat();
    request.with_header(SIGNATURE_HEADER, signature)
}

fn read_notification(body: &[u8]) -> Result<Verified<'_>, Rejection> {
    let payload = json_text(body)?;
    let fields = Fields::read(payload, EVENT_FIELDS)?;
    if fields.lenient::<String>("topic").as_deref() == Some(PING_TOPIC) {
        return Ok(Verified::handshake(Answer::empty(200)));
    }
    let id = fields.id("id")?;
    let fact = if id.is_some() { Vec::new() } else { fact_without_id(&fields) };
    let item = fields.object("data", &["item"]).and_then(|data| data.object("item", &["id"]));
    let event = VerifiedEvent {
        id,
        fact,
        event_type: required_event_type(NAME, &fields, "topic")?,
        occurred_at_unix_ms: fields.lenient("created_at").and_then(unix_ms_from_seconds),
        account: fields.short_text("app_id"),
        subject: item.and_then(|item| item.short_text("id")),
        payload: payload.into(),
        ..VerifiedEvent::default()
    };
    Ok(Verified::new(vec![event]))
}

/// What a retry repeats of a notification without an id. The body counts its attempts, so it is none of it; without
/// `data` it is all there is.
fn fact_without_id(fields: &Fields<'_>) -> Vec<String> {
    let Some(data) = fields.raw("data") else { return Vec::new() };
    let mut fact = vec![sha256_hex(data.as_bytes())];
    fact.extend(
        ["topic", "app_id", "created_at"].map(|name| fields.raw(name).unwrap_or_default().to_owned()),
    );
    fact
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secrets;
    use crate::testing::{Arriving, assert_conventions, assert_header_signs_body, event, outcome, settings};

    const BODY: &str = r#"{"type":"notification_event","app_id":"ssvvzgsy","data":{"type":"notification_event_data",
        "item":{"type":"conversation","id":"8839245066"}},"id":"notif_1c8b62e9","topic":"conversation.user.created",
        "delivery_attempts":1,"delivered_at":0,"created_at":1767236155}"#;

    #[test]
    fn what_fields_become() {
        let event = event(&Intercom, BODY);
        assert_eq!(event.id.as_deref(), Some("notif_1c8b62e9"));
        assert_eq!(event.event_type, "intercom.conversation.user.created");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_236_155_000));
        assert_eq!(event.account.as_deref(), Some("ssvvzgsy"));
        assert_eq!(event.subject.as_deref(), Some("8839245066"));
        assert_eq!(event.payload, BODY);
    }

    #[test]
    fn a_retry_is_the_same_fact_and_another_notification_is_not() {
        let identity = |body: &str| {
            let event = event(&Intercom, body);
            (event.id, event.fact)
        };
        let without_id = BODY.replace(r#""id":"notif_1c8b62e9""#, r#""id":null"#);
        for body in [BODY, without_id.as_str()] {
            let retry = body.replace("attempts\":1", "attempts\":2");
            assert_eq!(identity(&retry), identity(body));
            assert_ne!(
                identity(&body.replace("notif_1", "notif_2").replace("88392", "88393")),
                identity(body)
            );
        }
        assert_ne!(identity(&without_id.replace("user.created", "user.replied")), identity(&without_id));
        assert_eq!(identity(r#"{"topic":"a"}"#), (None, vec![]), "the body is the identity");
    }

    #[test]
    fn probe_and_ping_are_answered_and_make_no_event() {
        let ping = BODY.replace("conversation.user.created", "ping").replace("\"notif_1c8b62e9\"", "null");
        let verified = Arriving::signed(&Intercom, &ping).verified(&Intercom);
        assert_eq!(verified, Verified::handshake(Answer::empty(200)));
        let mut forged = Arriving::signed(&Intercom, BODY);
        forged.body = ping.into_bytes();
        assert_eq!(forged.outcome(&Intercom), "signature_mismatch");

        let probe = Arriving { method: "HEAD", headers: vec![], body: vec![], ..forged };
        assert_eq!(probe.clone().verified(&Intercom), Verified::handshake(Answer::empty(200)));
        let mut unset = settings(&Intercom);
        unset.secrets = Secrets::default();
        assert_eq!(probe.outcome_with(&Intercom, &unset), "no_secret");
    }

    #[test]
    fn what_is_not_an_event_is_refused() {
        for body in ["", "{}", r#"{"topic":7}"#, r#"{"topic":"a","id":7}"#, r#"{"topic":"ping","topic":"a"}"#]
        {
            assert_eq!(outcome(&Intercom, body), "unreadable_body", "{body}");
        }
    }

    #[test]
    fn the_body_is_signed() {
        assert_header_signs_body(&Intercom, SIGNATURE_HEADER, BODY);
        assert_conventions(&Intercom, BODY);
    }
}
