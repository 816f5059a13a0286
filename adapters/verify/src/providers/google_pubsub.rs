//! Google Cloud Pub/Sub push subscriptions with authentication: an OpenID Connect token as `Authorization: Bearer`.
//!
//! The scheme is that of google-auth-library 10.9.1 (`verifySignedJwtWithCertsAsync`) and of Google's documentation
//! ("Authentication for push subscriptions"): `RS256`, a certificate of Google's by its id, issuer, audience, the
//! service account of the subscription, and a life of a day at most. The token says nothing about the body.

use crate::{
    Context, Provider, ProviderOption, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    certificate::Certificate,
    event::unix_ms_from_rfc3339,
    jwt::{RS256, Token, required_claim},
    keys::KeySource,
    public_key::RsaKey,
};

/// Where Google publishes its certificates: a JSON object from their ids to PEM.
pub const CERTIFICATES_URL: &str = "https://www.googleapis.com/oauth2/v1/certs";
/// Who issues the tokens, in both spellings that Google uses.
pub const ISSUERS: [&str; 2] = ["https://accounts.google.com", "accounts.google.com"];
/// How long a token may live, in seconds.
pub const LIFETIME_SECONDS_MAX: i64 = 86_400;

const NAME: &str = "google_pubsub";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const EVENT_TYPE: &str = "google_pubsub.message";
const AUDIENCE: &str = "audience";
const SERVICE_ACCOUNT_EMAIL: &str = "service_account_email";

/// The provider `google_pubsub`.
#[derive(Debug, Clone, Copy)]
pub struct GooglePubSub;

impl Provider for GooglePubSub {
    fn name(&self) -> &'static str {
        NAME
    }

    fn options(&self) -> &'static [ProviderOption] {
        &[
            ProviderOption {
                name: SERVICE_ACCOUNT_EMAIL,
                is_required: true,
                help: "the service account of the push subscription; anybody can have tokens made for another one",
            },
            ProviderOption {
                name: AUDIENCE,
                is_required: false,
                help: "the audience of the push subscription; without it the URL that is called",
            },
        ]
    }

    fn key_source(&self, request: &Request<'_>, settings: &Settings) -> Result<Option<KeySource>, Rejection> {
        settings.option(SERVICE_ACCOUNT_EMAIL).ok_or(Rejection::NoSecret)?;
        read_token(request)?;
        Ok(Some(KeySource::document(CERTIFICATES_URL)))
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        let token = read_token(request)?;
        let email = settings.option(SERVICE_ACCOUNT_EMAIL).ok_or(Rejection::NoSecret)?;
        let audience = settings.option(AUDIENCE).unwrap_or(request.url);
        let key = read_key(context.key, token.key_id(), context.now_unix)?;
        let claims = token.claims_rs256(
            &key,
            context.verifier,
            &["iss", "aud", "email", "email_verified", "iat", "exp"],
        )?;
        require_meant_for_us(&claims, audience, email)?;
        require_alive(&claims, context.now_unix, settings.tolerance_seconds)?;
        Ok(Verified::new(vec![read_event(request.body)?]))
    }
}

/// What can be said about a request before its key is there.
fn read_token<'r>(request: &Request<'r>) -> Result<Token<'r>, Rejection> {
    request.require_method(METHOD)?;
    request.require_media_type(MEDIA_TYPE)?;
    let header = request.headers.signature("authorization")?;
    // The name of a scheme has no case (RFC 9110, section 11.1).
    let token = header.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let (_, token) = token.ok_or(Rejection::SignatureMalformed("not a bearer token"))?;
    Token::parse(token, RS256)
}

/// Finds the certificate of this id among those that Google publishes.
fn read_key(text: Option<&str>, key_id: &str, now_unix: i64) -> Result<RsaKey, Rejection> {
    let text = text.ok_or(Rejection::KeyUntrusted("Google publishes no keys"))?;
    let certificates: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(text).map_err(|_| Rejection::KeyUntrusted("the keys cannot be read"))?;
    let pem = certificates.get(key_id).and_then(serde_json::Value::as_str);
    let pem = pem.ok_or(Rejection::KeyUntrusted("Google publishes no such key"))?;
    let certificates = Certificate::read_pem(pem)?;
    let certificate = certificates.first().ok_or(Rejection::KeyUntrusted("the key cannot be read"))?;
    certificate.require_valid_at(now_unix)?;
    certificate.rsa_key()
}

fn require_meant_for_us(claims: &Fields<'_>, audience: &str, email: &str) -> Result<(), Rejection> {
    let is = |name: &str, expected: &str| claims.lenient::<String>(name).as_deref() == Some(expected);
    if !ISSUERS.iter().any(|issuer| is("iss", issuer)) {
        return Err(Rejection::SignatureForeign("the token is of another issuer"));
    }
    if !is("aud", audience) {
        return Err(Rejection::SignatureForeign("the token is for another audience"));
    }
    if !is("email", email) || claims.lenient::<bool>("email_verified") != Some(true) {
        return Err(Rejection::SignatureForeign("the token is of another service account"));
    }
    Ok(())
}

/// Refuses a token that is not valid at this time, give or take the tolerance, or lives longer than Google lets them.
fn require_alive(claims: &Fields<'_>, now_unix: i64, tolerance_seconds: u64) -> Result<(), Rejection> {
    let issued_unix: i64 = required_claim(claims, "iat")?;
    let expires_unix: i64 = required_claim(claims, "exp")?;
    let lifetime = expires_unix.saturating_sub(issued_unix);
    if !(0..=LIFETIME_SECONDS_MAX).contains(&lifetime) {
        return Err(Rejection::SignatureMalformed("the token lives too long, or ends before it begins"));
    }
    let tolerance = i64::try_from(tolerance_seconds).unwrap_or(i64::MAX);
    for (is_outside, edge_unix) in [
        (issued_unix > now_unix.saturating_add(tolerance), issued_unix),
        (expires_unix < now_unix.saturating_sub(tolerance), expires_unix),
    ] {
        if is_outside {
            let age_seconds = now_unix.saturating_sub(edge_unix);
            return Err(Rejection::SignatureStale { age_seconds, tolerance_seconds });
        }
    }
    Ok(())
}

/// Ids of messages are unique within a topic, and the body names the subscription but not its topic, so both make the
/// identity. `deliveryAttempt` changes when a message is sent again and is no part of it.
fn read_event(body: &[u8]) -> Result<VerifiedEvent<'_>, Rejection> {
    let payload = json_text(body)?;
    let fields = Fields::read(payload, &["message", "subscription"])?;
    let message = fields.object("message", &["messageId", "publishTime", "orderingKey"]);
    let message = message.ok_or(Rejection::Unreadable("no message"))?;
    let subscription: String =
        fields.value("subscription")?.ok_or(Rejection::Unreadable("no subscription"))?;
    Ok(VerifiedEvent {
        id: Some(message.id("messageId")?.ok_or(Rejection::Unreadable("no id"))?),
        fact: vec![subscription],
        event_type: EVENT_TYPE.to_owned(),
        occurred_at_unix_ms: message
            .lenient::<String>("publishTime")
            .and_then(|text| unix_ms_from_rfc3339(&text)),
        subject: message.short_text("orderingKey"),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Headers, Secrets, testing::corpus_case::CorpusCase};

    const CORPUS: &str = include_str!("../../tests/corpus/google_pubsub.jsonl");

    fn valid() -> CorpusCase {
        CorpusCase::find(CORPUS, "google_pubsub-001-valid")
    }

    fn settings(audience: &str, email: &str) -> Settings {
        Settings::new(&GooglePubSub, Secrets::default())
            .with_option(AUDIENCE, audience)
            .with_option(SERVICE_ACCOUNT_EMAIL, email)
    }

    const URL: &str = "https://hooks.example.com/in/pubsub";
    const EMAIL: &str = "push-invoker@example-project.iam.gserviceaccount.com";

    /// The verdict about a changed token, body and setting at a time.
    fn verify_at<'a>(
        token: &str,
        body: &'a [u8],
        key: Option<&str>,
        settings: &Settings,
        now_unix: i64,
    ) -> Result<Verified<'a>, Rejection> {
        let headers = Box::leak(Box::new(Headers::from_iter([("Authorization", token)])));
        let request = Request { method: METHOD, url: URL, headers, body };
        GooglePubSub.verify(&request, settings, &Context::at(now_unix).with_key(key))
    }

    fn reason<T>(verdict: Result<T, Rejection>) -> Option<&'static str> {
        verdict.err().map(|rejection| rejection.reason())
    }

    #[test]
    fn fields_become_an_event() {
        let case = valid();
        let key = case.download(CERTIFICATES_URL);
        let verified = verify_at(
            case.header("Authorization"),
            &case.body,
            Some(&key),
            &settings(URL, EMAIL),
            case.now_unix,
        );
        let [event] = <[_; 1]>::try_from(verified.unwrap().events).unwrap();
        assert_eq!((event.id.as_deref(), event.event_type.as_str()), (Some("9000154452905218"), EVENT_TYPE));
        assert_eq!(event.fact, ["projects/example-project/subscriptions/orders"]);
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_248_600_123));
        assert_eq!((event.subject, event.payload.as_bytes()), (None, case.body.as_slice()));
    }

    #[test]
    fn a_repeat_is_the_same_fact_whatever_attempt_it_is() {
        let read = |text: &'static str| {
            let event = read_event(text.as_bytes()).unwrap();
            (event.id, event.fact)
        };
        let first = read(r#"{"deliveryAttempt":1,"message":{"messageId":"1"},"subscription":"s"}"#);
        assert_eq!(first, read(r#"{"deliveryAttempt":2,"message":{"messageId":"1"},"subscription":"s"}"#));
        assert_ne!(first, read(r#"{"message":{"messageId":"2"},"subscription":"s"}"#));
        assert_ne!(first, read(r#"{"message":{"messageId":"1"},"subscription":"t"}"#));
    }

    #[test]
    fn every_part_of_the_token_is_signed() {
        let case = valid();
        let key = case.download(CERTIFICATES_URL);
        let token = case.header("Authorization");
        let verify = |token: &str| verify_at(token, b"{}", Some(&key), &settings(URL, EMAIL), case.now_unix);
        assert_eq!(reason(verify(token)), Some("unreadable_body"));
        for (place, old) in token.char_indices().skip("Bearer ".len()).step_by(7) {
            let new = if old == 'A' { 'B' } else { 'A' };
            let changed = [&token[..place], &new.to_string(), &token[place + 1..]].concat();
            let reason = reason(verify(&changed)).unwrap();
            assert!(reason != "unreadable_body" && reason != "signature_stale", "{place}: {reason}");
        }
    }

    #[test]
    fn the_token_must_be_meant_for_this_endpoint() {
        let case = valid();
        let key = case.download(CERTIFICATES_URL);
        let token = case.header("Authorization");
        let verify = |token: &str, key: Option<&str>, settings: &Settings| {
            reason(verify_at(token, &case.body, key, settings, case.now_unix))
        };
        let key = Some(key.as_str());
        assert_eq!(verify(token, key, &settings(URL, EMAIL)), None);
        assert_eq!(verify(token, key, &settings("", EMAIL)), None, "without an audience it is the URL");
        assert_eq!(verify(token, key, &settings("https://x/", EMAIL)), Some("signature_foreign"));
        assert_eq!(verify(token, key, &settings(URL, "a@b")), Some("signature_foreign"));
        assert_eq!(verify(token, key, &settings(URL, "")), Some("no_secret"));
        assert_eq!(verify(token, None, &settings(URL, EMAIL)), Some("key_untrusted"));
        for text in ["", "{}", "[]", r#"{"b09de82fbeb8fd7a6e9cc31ecb72f50357fa2572":7}"#] {
            assert_eq!(verify(token, Some(text), &settings(URL, EMAIL)), Some("key_untrusted"), "{text}");
        }
        for (header, expected) in [
            (token.replacen("Bearer", "bearer", 1), None),
            (token.replacen("Bearer ", "", 1), Some("signature_malformed")),
            (token.replacen("Bearer", "Bearer ", 1), Some("signature_malformed")),
            ([token, ", ", token].concat(), Some("signature_malformed")),
        ] {
            assert_eq!(verify(&header, key, &settings(URL, EMAIL)), expected, "{header}");
        }
    }

    #[test]
    fn a_token_lives_from_its_issue_to_its_end() {
        let case = valid();
        let key = case.download(CERTIFICATES_URL);
        let (issued, expires) = (1_767_248_501, 1_767_252_101);
        for (now_unix, expected) in [
            (issued - 301, Some("signature_stale")),
            (issued - 300, None),
            (expires + 300, None),
            (expires + 301, Some("signature_stale")),
            // The certificate has ended by then.
            (2_600_000_000, Some("key_untrusted")),
        ] {
            let verdict = verify_at(
                case.header("Authorization"),
                &case.body,
                Some(&key),
                &settings(URL, EMAIL),
                now_unix,
            );
            assert_eq!(reason(verdict), expected, "{now_unix}");
        }
        let claims = |text| require_alive(&Fields::read(text, &["iat", "exp"]).unwrap(), 1000, 300);
        assert_eq!(reason(claims(r#"{"iat":1000,"exp":87400}"#)), None);
        for odd in
            [r#"{"iat":1000,"exp":87401}"#, r#"{"iat":1000,"exp":999}"#, r#"{"iat":1000}"#, r#"{"exp":1000}"#]
        {
            assert_eq!(reason(claims(odd)), Some("signature_malformed"), "{odd}");
        }
    }

    #[test]
    fn a_body_that_is_no_message_is_unreadable() {
        for body in [
            "",
            "{}",
            r#"{"message":{},"subscription":"s"}"#,
            r#"{"message":{"messageId":7},"subscription":"s"}"#,
            r#"{"message":{"messageId":"1"}}"#,
            r#"{"message":"m","subscription":"s"}"#,
        ] {
            assert_eq!(
                read_event(body.as_bytes()).map_err(|rejection| rejection.status()).err(),
                Some(400),
                "{body}"
            );
        }
    }
}
