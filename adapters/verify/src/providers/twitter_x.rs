//! X (Twitter): events of the Account Activity API, and the challenge that keeps the webhook alive.
//!
//! There is no SDK. The scheme is that of docs.x.com (webhooks, quickstart): `sha256=<base64>` of HMAC-SHA256 over the
//! body, keyed with the app's consumer secret, and the same over `crc_token` as the answer to a challenge.

use crate::{
    Answer, Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, items, json_text, members},
    event::event_type_or_unknown,
    signature::{decode_base64, encode_base64, hmac_sha256, is_challenge, require_hmac_sha256, sha256_hex},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-twitter-webhooks-signature";
/// Prefix of a signature and of the answer to a challenge.
pub const SIGNATURE_PREFIX: &str = "sha256=";
/// Parameter of a challenge.
pub const CHALLENGE_PARAMETER: &str = "crc_token";

const NAME: &str = "twitter_x";
const EVENT_METHOD: &str = "POST";
const CHALLENGE_METHOD: &str = "GET";
const MEDIA_TYPE: &str = "application/json";
/// Field with the user to whose subscription all events of a request belong.
const USER_FIELD: &str = "for_user_id";
/// How the names of the fields end that hold a list of events, and one event.
const LIST_SUFFIX: &str = "_events";
const SINGLE_SUFFIX: &str = "_event";

/// The provider `twitter_x`.
#[derive(Debug, Clone, Copy)]
pub struct TwitterX;

impl Provider for TwitterX {
    fn name(&self) -> &'static str {
        NAME
    }

    fn methods(&self) -> &'static [&'static str] {
        &[EVENT_METHOD, CHALLENGE_METHOD]
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        _context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        if request.method == CHALLENGE_METHOD {
            return answer_challenge(request, settings).map(Verified::handshake);
        }
        request.require_method(EVENT_METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        settings.require_secrets()?;
        let signature = request.headers.signature(SIGNATURE_HEADER)?.strip_prefix(SIGNATURE_PREFIX);
        let signature = signature
            .and_then(decode_base64)
            .ok_or(Rejection::SignatureMalformed("not `sha256=` and the base64 of 32 bytes"))?;
        require_hmac_sha256(&settings.secrets, &signature, &[request.body])?;
        read_events(json_text(request.body)?).map(Verified::new)
    }
}

/// Proves that the endpoint has the secret. A challenge is not signed and anybody can ask for its digest, which is a
/// signature at the same time, so only a text that can never be a body is answered. Of several secrets the first one
/// answers.
fn answer_challenge(request: &Request<'_>, settings: &Settings) -> Result<Answer, Rejection> {
    let secret = settings.secrets.iter().next().ok_or(Rejection::NoSecret)?;
    let malformed = Rejection::SignatureMalformed("the crc_token is not a plain token, once");
    let query = request.query().map_err(|_| malformed)?;
    let token = query.single(CHALLENGE_PARAMETER).map_err(|_| malformed)?;
    let token = token.ok_or(Rejection::SignatureMissing)?;
    if !is_challenge(token) {
        return Err(malformed);
    }
    let signature = signature(secret.expose(), token.as_bytes());
    Ok(Answer::json([r#"{"response_token":""#, &signature, r#""}"#].concat()))
}

fn signature(secret: &str, signed: &[u8]) -> String {
    [SIGNATURE_PREFIX, &encode_base64(&hmac_sha256(secret.as_bytes(), &[signed]))].concat()
}

/// Signs as X does.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let signature = signature(secret, &request.body);
    request.with_header(SIGNATURE_HEADER, signature)
}

/// All events of a request. A body without any is an event of unknown type, since X has further products.
fn read_events(payload: &str) -> Result<Vec<VerifiedEvent<'_>>, Rejection> {
    let user = Fields::read(payload, &[USER_FIELD])?.id_or_number(USER_FIELD)?;
    let mut events = Vec::new();
    for (name, value) in members(payload)? {
        if name.ends_with(LIST_SUFFIX) {
            // What should be a list and is none is one event, so that it hides nothing.
            let list = items(value).unwrap_or_else(|_| vec![value]);
            events.extend(list.into_iter().map(|item| read_event(Some(&name), user.as_deref(), item)));
        } else if name.ends_with(SINGLE_SUFFIX) {
            events.push(read_event(Some(&name), user.as_deref(), value));
        }
    }
    if events.is_empty() {
        events.push(read_event(None, user.as_deref(), payload));
    }
    Ok(events)
}

/// One event. Ids are those of posts and messages, which several subscribers and several kinds of event may share, so
/// both belong to the fact; what has no id is told apart by its text.
fn read_event<'a>(name: Option<&str>, user: Option<&str>, payload: &'a str) -> VerifiedEvent<'a> {
    let fields = Fields::read(payload, &["id_str", "id", "timestamp_ms", "created_timestamp"]).ok();
    let text = |name: &str| fields.as_ref().and_then(|fields| fields.text_or_number(name));
    let time = |name: &str| fields.as_ref().and_then(|fields| fields.time_in_ms(name));
    let id = text("id_str").or_else(|| text("id"));
    let mut fact = vec![name.unwrap_or_default().to_owned(), user.unwrap_or_default().to_owned()];
    if id.is_none() {
        fact.push(sha256_hex(payload));
    }
    VerifiedEvent {
        event_type: event_type_or_unknown(NAME, name),
        occurred_at_unix_ms: time("timestamp_ms").or_else(|| time("created_timestamp")),
        account: user.map(str::to_owned),
        subject: id.clone(),
        id,
        fact,
        payload: payload.into(),
        ..VerifiedEvent::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::trial::{SECRET, Trial, URL};

    const BODY: &str = r#"{"for_user_id":"9","tweet_create_events":[{"id":39,"id_str":"39","timestamp_ms":"1767237942123"},
        {"id":40.0,"id_str":"40"}],"user_has_blocked":false}"#;

    fn trial() -> Trial {
        Trial::of(NAME)
    }

    fn challenge(query: &str) -> Outgoing {
        Outgoing {
            method: "GET",
            url: format!("https://hooks.example.com/in/x{query}"),
            headers: vec![],
            body: vec![],
        }
    }

    #[test]
    fn a_list_becomes_events_in_order() {
        let events = trial().read(BODY).unwrap();
        let [first, second] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!((first.id.as_deref(), second.id.as_deref()), (Some("39"), Some("40")));
        assert_eq!(first.fact, ["tweet_create_events", "9"]);
        assert_eq!(first.event_type, "twitter_x.tweet_create_events");
        assert_eq!(first.occurred_at_unix_ms, Some(1_767_237_942_123));
        assert_eq!((first.account.as_deref(), first.subject.as_deref()), (Some("9"), Some("39")));
        assert_eq!(first.payload, r#"{"id":39,"id_str":"39","timestamp_ms":"1767237942123"}"#);
        assert_eq!(second.payload, r#"{"id":40.0,"id_str":"40"}"#);
    }

    #[test]
    fn kinds_may_be_mixed_single_or_unknown() {
        let mixed = r#"{"follow_events":[{"created_timestamp":"1"},null],"user_event":{"revoke":{}},
            "block_events":7,"apps":{},"for_user_id":"9"}"#;
        let events = trial().read(mixed).unwrap();
        let found: Vec<_> = events.iter().map(|event| (event.event_type.as_str(), &*event.payload)).collect();
        let expected = [
            ("twitter_x.follow_events", r#"{"created_timestamp":"1"}"#),
            ("twitter_x.follow_events", "null"),
            ("twitter_x.user_event", r#"{"revoke":{}}"#),
            ("twitter_x.block_events", "7"),
        ];
        assert_eq!(found, expected);
        assert!(events.iter().all(|event| event.id.is_none() && event.fact.len() == 3));
        for body in ["{}", r#"{"data":{"id":"1"},"matching_rules":[]}"#] {
            let event = trial().read_one(body);
            assert_eq!((event.event_type.as_str(), &*event.payload), ("twitter_x.unknown", body));
        }
        assert_eq!(trial().read(r#"{"tweet_create_events":[]}"#).unwrap().len(), 1);
        for body in ["", "[]", "1", r#"{"for_user_id":"9","for_user_id":"8"}"#, r#"{"for_user_id":{}}"#] {
            assert_eq!(trial().reason(trial().signed(body)), Some("unreadable_body"), "{body}");
        }
    }

    #[test]
    fn user_and_kind_make_another_fact_under_one_id() {
        let identity = |body: &str| {
            let event = trial().read(body).unwrap().remove(0);
            (event.id, event.fact)
        };
        let without_id = BODY.replace(r#""id":39,"id_str":"39","#, "");
        for body in [BODY, &without_id] {
            let first = identity(body);
            assert_eq!(identity(body), first);
            assert_ne!(identity(&body.replace(r#""9""#, r#""8""#)), first);
            assert_ne!(identity(&body.replace("tweet_create", "favorite")), first);
        }
        assert_ne!(identity(&without_id.replace("42123", "42124")), identity(&without_id));
    }

    #[test]
    fn a_challenge_is_answered_with_the_first_secret() {
        let expected = signature(SECRET, b"9b45/+=");
        let answer = Ok(Verified::handshake(Answer::json(format!(r#"{{"response_token":"{expected}"}}"#))));
        let rotating = trial().with_secrets(&[SECRET, "another-secret"]);
        for query in ["?crc_token=9b45/%2B=", "?nonce=1&crc_token=9b45%2F%2B%3D"] {
            assert_eq!(rotating.verify(challenge(query)), answer, "{query}");
        }
        assert_eq!(trial().with_secrets(&[]).reason(challenge("?crc_token=a")), Some("no_secret"));
        assert_eq!(trial().reason(challenge("")), Some("signature_missing"));
    }

    #[test]
    fn a_challenge_cannot_be_a_body() {
        for token in [
            "",
            "%7B%7D",
            "%7B%22tweet_create_events%22%3A%5B%7B%7D%5D%7D",
            "%20%7B%7D",
            "a&crc_token=b",
            "%FF",
        ] {
            let request = challenge(&format!("?crc_token={token}"));
            assert_eq!(trial().reason(request), Some("signature_malformed"), "{token}");
        }
        // Whatever is answered is unreadable as a body.
        let asked = trial().verify(challenge("?crc_token=1")).unwrap().answer.unwrap().body;
        let signature = asked.split('"').nth(3).unwrap().to_owned();
        let replayed = Outgoing::post(URL, MEDIA_TYPE, "1").with_header(SIGNATURE_HEADER, signature);
        assert_eq!(trial().reason(replayed), Some("unreadable_body"));
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        trial().assert_flips_are_refused(&trial().signed(BODY), &[SIGNATURE_HEADER]);
    }
}
