//! Dropbox: one HMAC-SHA256 over the body, a challenge that is sent back, and notifications that only say who changed.
//!
//! The scheme is the one of dropbox.com/developers/reference/webhooks, which third parties implement alike; there is no SDK
//! that verifies. The fields are those of the same page.

use crate::{
    Answer, Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{event_type_or_unknown, is_short_text},
    signature::{decode_hex_lower, hmac_sha256, require_hmac_header, sha256_hex},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-dropbox-signature";
/// Parameter of the handshake that is sent back.
pub const CHALLENGE: &str = "challenge";

const NAME: &str = "dropbox";
const METHOD: &str = "POST";
const HANDSHAKE_METHOD: &str = "GET";
const MEDIA_TYPE: &str = "application/json";
/// Kinds of notification: the field that is there says which one it is. `delta` is the old form of the first, and comes
/// beside it.
const KINDS: &[&str] = &["list_folder", "delta"];

/// The provider `dropbox`.
#[derive(Debug, Clone, Copy)]
pub struct Dropbox;

impl Provider for Dropbox {
    fn name(&self) -> &'static str {
        NAME
    }

    fn methods(&self) -> &'static [&'static str] {
        &[METHOD, HANDSHAKE_METHOD]
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        if request.method == HANDSHAKE_METHOD {
            settings.require_secrets()?;
            return handshake(request);
        }
        request.require_method(METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        let signed = [request.body];
        require_hmac_header(request, &settings.secrets, SIGNATURE_HEADER, decode_hex_lower, &signed)?;
        Ok(Verified::new(vec![read_notification(request.body, context.now_unix)?]))
    }
}

/// Signs as Dropbox does. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let digest = hmac_sha256(secret.as_bytes(), &[&request.body]);
    request.with_header(SIGNATURE_HEADER, hex::encode(digest))
}

/// The handshake is not signed, so anybody can ask for it. He gets nothing but what he said, as plain text, and a short
/// one: no page can be made of it.
fn handshake<'a>(request: &Request<'a>) -> Result<Verified<'a>, Rejection> {
    let query = request.query()?;
    let challenge = query.single(CHALLENGE)?.filter(|challenge| is_short_text(challenge));
    let challenge = challenge.ok_or(Rejection::Unreadable("no challenge of visible ASCII"))?;
    Ok(Verified::handshake(Answer::text(challenge)))
}

/// Reads a notification.
///
/// Two changes of one account give two equal bodies, and nothing else in the requests tells them apart. So the second of
/// arrival is in the fact: a retry comes twice, which costs a look at a cursor that has not moved, and no change is lost.
fn read_notification(body: &[u8], now_unix: i64) -> Result<VerifiedEvent<'_>, Rejection> {
    let payload = json_text(body)?;
    let fields = Fields::read(payload, KINDS)?;
    let kind = KINDS.iter().copied().find(|kind| fields.raw(kind).is_some());
    Ok(VerifiedEvent {
        fact: vec![sha256_hex(body), now_unix.to_string()],
        event_type: event_type_or_unknown(NAME, kind),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Secrets,
        testing::{Arriving, NOW, assert_header_signs_body, event, outcome, settings},
    };

    const BODY: &str = r#"{"list_folder":{"accounts":["dbid:AAH4f99"]},"delta":{"users":[12345678]}}"#;

    #[test]
    fn what_fields_become() {
        for (body, event_type) in [
            (BODY, "dropbox.list_folder"),
            (r#"{"delta":{"users":[1]}}"#, "dropbox.delta"),
            (r#"{"list_folder":null,"new_kind":{}}"#, "dropbox.unknown"),
        ] {
            let event = event(&Dropbox, body);
            assert_eq!((event.event_type.as_str(), event.id, &*event.payload), (event_type, None, body));
        }
        for body in ["", "[]", "{", r#"{"delta":1,"delta":2}"#] {
            assert_eq!(outcome(&Dropbox, body), "unreadable_body", "{body}");
        }
    }

    #[test]
    fn no_change_is_taken_for_a_retry_of_another_one() {
        let at = |now| read_notification(BODY.as_bytes(), now).unwrap().fact;
        assert_eq!(at(NOW), at(NOW));
        assert_ne!(at(NOW), at(NOW + 1));
        assert_ne!(at(NOW), read_notification(b"{}", NOW).unwrap().fact);
    }

    /// A handshake with this query.
    fn asking(query: &str) -> Arriving {
        let url = format!("https://hooks.example.com/webhook/dropbox{query}");
        Arriving { method: "GET", url, headers: vec![], body: vec![] }
    }

    #[test]
    fn a_challenge_is_sent_back_as_plain_text() {
        for (query, challenge) in [("?challenge=abc123", "abc123"), ("?a=1&challenge=%3Cb%3E#x", "<b>")] {
            let verified = asking(query).verified(&Dropbox);
            assert_eq!(verified, Verified::handshake(Answer::text(challenge)));
            let headers = verified.answer.unwrap().headers;
            assert!(headers.contains(&("x-content-type-options", "nosniff".to_owned())));
        }
        let long = format!("?challenge={}", "a".repeat(201));
        for query in
            ["", "?", "?challenge=", "?challenge=a&challenge=b", "?challenge=a+b", "?challenge=%FF", &long]
        {
            assert_eq!(asking(query).outcome(&Dropbox), "unreadable_body", "{query}");
        }
        let mut unset = settings(&Dropbox);
        unset.secrets = Secrets::default();
        assert_eq!(asking("?challenge=a").outcome_with(&Dropbox, &unset), "no_secret");
        for method in ["HEAD", "PUT", "get"] {
            let other = Arriving { method, ..asking("?challenge=a") };
            assert_eq!(other.outcome(&Dropbox), "method_not_allowed", "{method}");
        }
    }

    #[test]
    fn the_body_is_signed() {
        assert_header_signs_body(&Dropbox, SIGNATURE_HEADER, BODY);
        let mut other = Arriving::signed(&Dropbox, BODY);
        other.headers.retain(|(name, _)| *name != "content-type");
        other.headers.push(("content-type", "text/plain".to_owned()));
        assert_eq!(other.outcome(&Dropbox), "unsupported_media_type");
    }
}
