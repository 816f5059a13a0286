//! Mailgun: a signed token inside the body, which covers nothing else of it.
//!
//! There is no SDK that verifies. The scheme is that of Mailgun's page "Securing webhooks": hex of HMAC-SHA256 over time and
//! token, keyed with the webhook signing key. A token is good for one event, so it is the identity: whoever repeats it with
//! another body brings the same event again.

use crate::{
    Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text, with_members},
    event::{event_type_or_unknown, unix_ms_from_seconds},
    signature::{decode_hex_lower, hmac_sha256, parse_unix_seconds, require_fresh, require_match},
};

const NAME: &str = "mailgun";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const BODY_FIELDS: &[&str] = &["signature", "event-data"];
const SIGNATURE_FIELDS: &[&str] = &["timestamp", "token", "signature", "parent-signature"];
const EVENT_FIELDS: &[&str] = &["event", "id", "timestamp", "message", "flags"];
/// Mailgun tries for eight hours and does not say that it signs anew, so the usual five minutes would lose events. What a
/// token is worth is bounded by its being the identity.
const TOLERANCE_SECONDS: u64 = 24 * 60 * 60;

/// The provider `mailgun`.
#[derive(Debug, Clone, Copy)]
pub struct Mailgun;

impl Provider for Mailgun {
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
        // Without a readable body there is no signature either.
        let payload = json_text(request.body).map_err(|_| Rejection::SignatureMissing)?;
        let fields = Fields::read(payload, BODY_FIELDS).map_err(|_| Rejection::SignatureMissing)?;
        let signature = fields.object("signature", SIGNATURE_FIELDS).ok_or(Rejection::SignatureMissing)?;
        let fact = verify_signature(&signature, settings, context.now_unix)?;
        let event =
            fields.object("event-data", EVENT_FIELDS).ok_or(Rejection::Unreadable("no event-data"))?;
        Ok(Verified::new(vec![read_event(payload, &event, fact)?]))
    }
}

/// What is signed, time and token. A subaccount's event is signed with the key of its parent as well, and either will do.
fn verify_signature(
    fields: &Fields<'_>,
    settings: &Settings,
    now_unix: i64,
) -> Result<Vec<String>, Rejection> {
    let malformed = Rejection::SignatureMalformed("time, token or signature is missing or has another form");
    let timestamp = fields.text_or_number("timestamp").ok_or(malformed)?;
    let token = fields.short_text("token").ok_or(malformed)?;
    let signed_unix = parse_unix_seconds(&timestamp).ok_or(malformed)?;
    let decode = |name| match fields.lenient::<String>(name) {
        Some(text) => decode_hex_lower::<32>(&text).map(Some).ok_or(malformed),
        None => Ok(None),
    };
    let offered: Vec<_> = [decode("signature")?, decode("parent-signature")?].into_iter().flatten().collect();
    if offered.is_empty() {
        return Err(malformed);
    }
    require_match(&settings.secrets, &offered, |secret| {
        hmac_sha256(secret.expose().as_bytes(), &[timestamp.as_bytes(), token.as_bytes()])
    })?;
    require_fresh(signed_unix, now_unix, settings.tolerance_seconds)?;
    Ok(vec![timestamp, token])
}

/// The payload leaves the signature out: whoever reads it could use it for a request of their own.
fn read_event<'a>(
    payload: &str,
    event: &Fields<'_>,
    fact: Vec<String>,
) -> Result<VerifiedEvent<'a>, Rejection> {
    let mailgun_type: String = event.value("event")?.ok_or(Rejection::Unreadable("no event"))?;
    let headers =
        event.object("message", &["headers"]).and_then(|message| message.object("headers", &["message-id"]));
    let is_test =
        event.object("flags", &["is-test-mode"]).and_then(|flags| flags.lenient::<bool>("is-test-mode"));
    let seconds = event.raw("timestamp").and_then(|number| number.split('.').next()?.parse().ok());
    Ok(VerifiedEvent {
        id: event.short_text("id"),
        is_id_unsigned: true,
        fact,
        event_type: event_type_or_unknown(NAME, Some(&mailgun_type)),
        occurred_at_unix_ms: seconds.and_then(unix_ms_from_seconds),
        livemode: is_test.map(|is_test| !is_test),
        subject: headers.and_then(|headers| headers.short_text("message-id")),
        payload: with_members(payload, &[("signature", None)])?.into(),
        ..VerifiedEvent::default()
    })
}

/// Signs as Mailgun does: writes time, token and signature into the JSON body. The token is made of the body, so that the same
/// body at the same time is a retry.
#[must_use]
pub fn sign(mut request: Outgoing, secret: &str, now_unix: i64) -> Outgoing {
    let body = std::str::from_utf8(&request.body).unwrap_or_default();
    let bare = with_members(body, &[("signature", None)]).unwrap_or_default();
    let timestamp = now_unix.to_string();
    let token = crate::signature::sha256_hex(&bare);
    let digest = hmac_sha256(secret.as_bytes(), &[timestamp.as_bytes(), token.as_bytes()]);
    let signature =
        serde_json::json!({ "timestamp": timestamp, "token": token, "signature": hex::encode(digest) });
    let rest = bare.strip_prefix('{').unwrap_or("}");
    let comma = if rest == "}" { "" } else { "," };
    request.body = [r#"{"signature":"#, &signature.to_string(), comma, rest].concat().into_bytes();
    request
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, NOW, URL, event, outcome};

    const BODY: &str = r#"{"event-data":{"event":"delivered","timestamp":1767249598.75,"id":"e1","n":1.0,
        "message":{"headers":{"message-id":"m@example.com"}},"flags":{"is-test-mode":false}}}"#;

    fn changed(from: &str, to: &str) -> Arriving {
        let mut arriving = Arriving::signed(&Mailgun, BODY);
        let body = String::from_utf8(arriving.body).unwrap();
        assert!(body.contains(from), "{body}");
        arriving.body = body.replacen(from, to, 1).into_bytes();
        arriving
    }

    #[test]
    fn an_event_is_read_in_full() {
        let event = event(&Mailgun, BODY);
        assert_eq!((event.id.as_deref(), event.event_type.as_str()), (Some("e1"), "mailgun.delivered"));
        assert_eq!((event.occurred_at_unix_ms, event.livemode), (Some(1_767_249_598_000), Some(true)));
        assert_eq!(event.subject.as_deref(), Some("m@example.com"));
        assert!(
            event.payload.contains(r#""n":1.0"#) && !event.payload.contains("token"),
            "{}",
            event.payload
        );
    }

    #[test]
    fn one_token_is_one_event_whatever_the_body_says() {
        let identity = |arriving: Arriving| {
            let event = arriving.verified(&Mailgun).events.remove(0);
            (event.id.filter(|_| !event.is_id_unsigned), event.fact)
        };
        let first = identity(Arriving::signed(&Mailgun, BODY));
        assert_eq!(identity(Arriving::signed(&Mailgun, BODY)), first);
        assert_eq!(identity(changed("delivered", "complained")), first, "the signature does not cover it");
        assert_eq!(identity(changed("\"e1\"", "\"e2\"")), first);
        assert_ne!(identity(Arriving::signed(&Mailgun, &BODY.replace("e1", "e2"))), first);
    }

    #[test]
    fn what_is_signed_counts_and_is_read_strictly() {
        for (from, to, expected) in [
            (r#""timestamp":"1"#, r#""timestamp":"2"#, "signature_mismatch"),
            (r#""token":""#, r#""token":"0"#, "signature_mismatch"),
            (r#""timestamp":"1767237945""#, r#""timestamp":1767237945"#, "accept"),
            (r#""timestamp":"1767237945""#, r#""timestamp":"NaN""#, "signature_malformed"),
            (r#""timestamp":"1767237945","#, "", "signature_malformed"),
            (r#""signature":""#, r#""signature":"AB"#, "signature_malformed"),
            (r#""signature":{"#, r#""other":{"#, "signature_missing"),
            (r#"{"signature":{"#, r#"{"signature":{},"signature":{"#, "signature_missing"),
            ("\"event-data\"", "\"data\"", "unreadable_body"),
        ] {
            assert_eq!(changed(from, to).outcome(&Mailgun), expected, "{from} {to}");
        }
        for body in ["", "[]", "7", "{"] {
            let arriving = Arriving { body: body.into(), ..Arriving::signed(&Mailgun, BODY) };
            assert_eq!(arriving.outcome(&Mailgun), "signature_missing", "{body}");
        }
        assert_eq!(outcome(&Mailgun, "{}"), "unreadable_body");
    }

    #[test]
    fn a_retry_of_eight_hours_passes_and_what_is_older_than_a_day_does_not() {
        let at = |signed_unix| {
            Arriving::signed_at(&Mailgun, Outgoing::post(URL, MEDIA_TYPE, BODY), signed_unix)
                .outcome(&Mailgun)
        };
        assert_eq!(at(NOW - 8 * 3_600), "accept");
        assert_eq!(at(NOW - 86_401), "signature_stale");
        assert_eq!(at(NOW + 86_401), "signature_stale");
    }
}
