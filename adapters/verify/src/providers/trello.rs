//! Trello: one action per request, and a probe before a webhook is made.
//!
//! There is no SDK. The scheme is that of Trello's guide (developer.atlassian.com/cloud/trello/guides/rest-api/webhooks):
//! base64 of HMAC-SHA1 over the body and the callback URL, keyed with the app's secret.

use crate::{
    Answer, Context, Outgoing, Provider, ProviderOption, Rejection, Request, Settings, Verified,
    VerifiedEvent,
    body::{Fields, json_text},
    event::platform_event_type,
    signature::{decode_base64, encode_base64, hmac_sha1, require_match},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-trello-webhook";

const NAME: &str = "trello";
const EVENT_METHOD: &str = "POST";
const PROBE_METHOD: &str = "HEAD";
const MEDIA_TYPE: &str = "application/json";
const ACTION_FIELDS: &[&str] = &["id", "type", "date", "data"];

/// The provider `trello`.
#[derive(Debug, Clone, Copy)]
pub struct Trello;

impl Provider for Trello {
    fn name(&self) -> &'static str {
        NAME
    }

    fn methods(&self) -> &'static [&'static str] {
        &[EVENT_METHOD, PROBE_METHOD]
    }

    fn options(&self) -> &'static [ProviderOption] {
        &[ProviderOption::URL]
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        _context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        if request.method == PROBE_METHOD {
            // A webhook whose requests could not be verified had better not be made.
            settings.require_secrets()?;
            return Ok(Verified::handshake(Answer::empty(200)));
        }
        request.require_method(EVENT_METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        settings.require_secrets()?;
        let signature = decode_base64(request.headers.signature(SIGNATURE_HEADER)?);
        let signature = signature.ok_or(Rejection::SignatureMalformed("not the base64 of 20 bytes"))?;
        let url = settings.signed_url(request).as_bytes();
        require_match(&settings.secrets, &[signature], |secret| {
            hmac_sha1(secret.expose().as_bytes(), &[request.body, url])
        })?;
        Ok(Verified::new(vec![read_event(json_text(request.body)?)?]))
    }
}

fn read_event(payload: &str) -> Result<VerifiedEvent<'_>, Rejection> {
    let fields = Fields::read(payload, &["action", "model", "webhook"])?;
    let action = fields.object("action", ACTION_FIELDS).ok_or(Rejection::Unreadable("no action"))?;
    let trello_type: String = action.value("type")?.ok_or(Rejection::Unreadable("no type"))?;
    let id_in = |fields: &Fields<'_>, name| {
        fields.object(name, &["id"]).and_then(|object| object.text_or_number("id"))
    };
    let id = action.id_or_number("id")?;
    // An action is sent once for each webhook that watches one of its models.
    let fact = match &id {
        Some(_) => ["webhook", "model"].map(|name| id_in(&fields, name).unwrap_or_default()).to_vec(),
        None => Vec::new(),
    };
    let data = action.object("data", &["card", "board"]);
    Ok(VerifiedEvent {
        id,
        fact,
        event_type: platform_event_type(NAME, &trello_type)
            .ok_or(Rejection::Unreadable("the type is empty or too long"))?,
        occurred_at_unix_ms: action.time_in_rfc3339("date"),
        subject: data.and_then(|data| id_in(&data, "card").or_else(|| id_in(&data, "board"))),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

/// Signs as Trello does, for a webhook whose callback URL is the request's.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let digest = hmac_sha1(secret.as_bytes(), &[&request.body, request.url.as_bytes()]);
    request.with_header(SIGNATURE_HEADER, encode_base64(&digest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::trial::{Trial, URL};

    const EVENT: &str = r#"{"action":{"id":"a1","data":{"card":{"id":"c1"},"board":{"id":"b1"}},"type":"updateCard",
        "date":"2026-01-01T03:25:42.123Z"},"model":{"id":"b1"},"webhook":{"id":"w1"}}"#;

    fn trial() -> Trial {
        Trial::of(NAME)
    }

    #[test]
    fn an_event_is_read_in_full() {
        let event = trial().read_one(EVENT);
        assert_eq!((event.id.as_deref(), event.fact), (Some("a1"), vec!["w1".to_owned(), "b1".to_owned()]));
        assert_eq!(event.event_type, "trello.updatecard");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_237_942_123));
        assert_eq!((event.account, event.subject.as_deref()), (None, Some("c1")));
        assert_eq!(event.payload, EVENT);
        let on_a_board = trial().read_one(&EVENT.replace("card", "list"));
        assert_eq!(on_a_board.subject.as_deref(), Some("b1"));
        let without_id = trial().read_one(r#"{"action":{"type":"a"},"model":{"id":"b1"}}"#);
        assert_eq!((without_id.id, without_id.fact), (None, vec![]), "the payload is the identity");
    }

    #[test]
    fn another_webhook_makes_another_fact() {
        let identity = |body: &str| {
            let event = trial().read_one(body);
            (event.id, event.fact)
        };
        let first = identity(EVENT);
        assert_eq!(identity(EVENT), first);
        for (from, to) in [("a1", "a2"), ("w1", "w2"), (r#""model":{"id":"b1"#, r#""model":{"id":"c1"#)] {
            assert_ne!(identity(&EVENT.replace(from, to)), first, "{from}");
        }
    }

    #[test]
    fn the_probe_brings_no_event() {
        let probe = || Outgoing { method: "HEAD", url: URL.to_owned(), headers: vec![], body: EVENT.into() };
        assert_eq!(trial().verify(probe()), Ok(Verified::handshake(Answer::empty(200))));
        assert_eq!(trial().with_secrets(&[]).reason(probe()), Some("no_secret"));
        let get = Outgoing { method: "GET", ..probe() };
        assert_eq!(trial().reason(get), Some("method_not_allowed"));
    }

    #[test]
    fn signed_bodies_that_are_no_events_are_unreadable() {
        for body in [
            "",
            "[]",
            "{}",
            r#"{"action":[]}"#,
            r#"{"action":{"id":"a1"}}"#,
            r#"{"action":{"type":""}}"#,
            r#"{"action":{"id":"","type":"a"}}"#,
            r#"{"action":{"type":"a"},"action":{"type":"a"}}"#,
        ] {
            assert_eq!(trial().reason(trial().signed(body)), Some("unreadable_body"), "{body}");
        }
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        trial().assert_flips_are_refused(&trial().signed(EVENT), &[SIGNATURE_HEADER]);
        trial().assert_url_flips_are_refused(&trial().signed(EVENT));
        let elsewhere = "https://public.example.com/in/x";
        let behind_a_proxy = trial().with_option("url", elsewhere);
        assert_eq!(behind_a_proxy.reason(trial().signed(EVENT)), Some("signature_mismatch"));
        let request = sign(Outgoing::post(elsewhere, MEDIA_TYPE, EVENT), crate::testing::trial::SECRET, 0);
        assert_eq!(behind_a_proxy.reason(Outgoing { url: URL.to_owned(), ..request }), None);
    }
}
