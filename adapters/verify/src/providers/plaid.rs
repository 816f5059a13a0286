//! Plaid: a JSON Web Token in `Plaid-Verification` that holds the digest of the body.
//!
//! The scheme is that of Plaid's documentation ("Webhook verification"): `ES256`, a key that Plaid's API gives out by
//! its id, `iat` at most five minutes old, and `request_body_sha256`, the hex of SHA-256 over the body. Bodies are
//! indented by two blanks, and the blanks are signed.

use serde_json::{Map, Value};

use crate::{
    Context, Provider, ProviderOption, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::platform_event_type,
    jwt::{ES256, Token, required_claim},
    keys::KeySource,
    public_key::P256Key,
    signature::{any_equal, decode_base64_url, decode_hex_lower, require_fresh, sha256},
};

/// Header that carries the token.
pub const TOKEN_HEADER: &str = "plaid-verification";
/// Where the production environment gives out keys.
pub const PRODUCTION_KEYS_URL: &str = "https://production.plaid.com/webhook_verification_key/get";
/// Where the sandbox does.
pub const SANDBOX_KEYS_URL: &str = "https://sandbox.plaid.com/webhook_verification_key/get";

const NAME: &str = "plaid";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const CLIENT_ID: &str = "client_id";
const SECRET: &str = "secret";
const ENVIRONMENT: &str = "environment";
const SANDBOX: &str = "sandbox";

/// The provider `plaid`.
#[derive(Debug, Clone, Copy)]
pub struct Plaid;

impl Provider for Plaid {
    fn name(&self) -> &'static str {
        NAME
    }

    fn options(&self) -> &'static [ProviderOption] {
        &[
            ProviderOption {
                name: CLIENT_ID,
                is_required: true,
                help: "the client id with which Plaid's API gives out its keys",
            },
            ProviderOption {
                name: SECRET,
                is_required: true,
                help: "the API secret that belongs to the client id, not to be shown",
            },
            ProviderOption {
                name: ENVIRONMENT,
                is_required: false,
                help: "`sandbox` for Plaid's sandbox; without it production",
            },
        ]
    }

    fn key_source(&self, request: &Request<'_>, settings: &Settings) -> Result<Option<KeySource>, Rejection> {
        let token = read_token(request)?;
        let mut body = Map::new();
        for option in [CLIENT_ID, SECRET] {
            if let Some(value) = settings.option(option) {
                body.insert(option.to_owned(), value.into());
            }
        }
        body.insert("key_id".to_owned(), token.key_id().into());
        let is_sandbox = settings.option(ENVIRONMENT) == Some(SANDBOX);
        let url = if is_sandbox { SANDBOX_KEYS_URL } else { PRODUCTION_KEYS_URL };
        Ok(Some(KeySource::answer(url, Value::Object(body).to_string())))
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        let token = read_token(request)?;
        let key = read_key(context.key, token.key_id(), context.now_unix)?;
        let claims = token.claims_es256(&key, context.verifier, &["iat", "request_body_sha256"])?;
        let issued_unix: i64 = required_claim(&claims, "iat")?;
        let digest: String = required_claim(&claims, "request_body_sha256")?;
        let signed: [u8; 32] = decode_hex_lower(&digest)
            .ok_or(Rejection::SignatureMalformed("the digest is not 64 lower-case hex digits"))?;
        if !any_equal(&sha256(request.body), &[signed]) {
            return Err(Rejection::SignatureMismatch);
        }
        require_fresh(issued_unix, context.now_unix, settings.tolerance_seconds)?;
        Ok(Verified::new(vec![read_event(request.body, issued_unix, digest)?]))
    }
}

/// What can be said about a request before its key is there.
fn read_token<'r>(request: &Request<'r>) -> Result<Token<'r>, Rejection> {
    request.require_method(METHOD)?;
    request.require_media_type(MEDIA_TYPE)?;
    let token = Token::parse(request.headers.signature(TOKEN_HEADER)?, ES256)?;
    // Ids are UUIDs; what goes to the API should be nothing odder.
    if token.key_id().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        Ok(token)
    } else {
        Err(Rejection::KeyUntrusted("the token names no key of Plaid"))
    }
}

/// Reads the API's answer, `{"key":{…}}`, or the key out of it (a JSON Web Key, RFC 7517).
fn read_key(text: Option<&str>, key_id: &str, now_unix: i64) -> Result<P256Key, Rejection> {
    let text = text.ok_or(Rejection::KeyUntrusted("Plaid has no such key"))?;
    let unreadable = Rejection::KeyUntrusted("the key cannot be read");
    let names = &["key", "kty", "crv", "alg", "use", "kid", "x", "y", "expired_at"];
    let answer = Fields::read(text, names).map_err(|_| unreadable)?;
    let key =
        if answer.raw("key").is_some() { answer.object("key", names).ok_or(unreadable)? } else { answer };

    let is = |name: &str, expected: &str| key.lenient::<String>(name).as_deref() == Some(expected);
    if !(is("kty", "EC") && is("crv", "P-256") && is("alg", ES256) && is("use", "sig") && is("kid", key_id)) {
        return Err(Rejection::KeyUntrusted("the key is another one than the token names"));
    }
    let expired_unix: Option<f64> = key.value("expired_at").map_err(|_| unreadable)?;
    if expired_unix.is_some_and(|expired| expired <= now_unix as f64) {
        return Err(Rejection::KeyUntrusted("the key has expired"));
    }
    let coordinate = |name: &str| {
        let text: String = key.lenient(name)?;
        <[u8; 32]>::try_from(decode_base64_url(&text)?).ok()
    };
    let key = coordinate("x").zip(coordinate("y")).map(|(x, y)| P256Key::from_coordinates(&x, &y));
    key.ok_or(unreadable)
}

/// Plaid gives no id, and two notifications of the same kind for the same item have the same body, so the time of the
/// token has to tell them apart: it is better to hear of a fact twice than to take the second for the first.
fn read_event(body: &[u8], issued_unix: i64, digest: String) -> Result<VerifiedEvent<'_>, Rejection> {
    let payload = json_text(body)?;
    let fields = Fields::read(payload, &["webhook_type", "webhook_code", "item_id", "environment"])?;
    let required = |name| fields.value::<String>(name)?.ok_or(Rejection::Unreadable("no type or no code"));
    let plaid_type = [required("webhook_type")?, required("webhook_code")?].join(".");
    Ok(VerifiedEvent {
        fact: vec![issued_unix.to_string(), digest],
        event_type: platform_event_type(NAME, &plaid_type)
            .ok_or(Rejection::Unreadable("the type is too long"))?,
        livemode: fields.lenient::<String>("environment").map(|environment| environment == "production"),
        subject: fields.short_text("item_id"),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    use p256::ecdsa::{Signature, SigningKey, signature::Signer as _};

    use super::*;
    use crate::{Headers, Secrets, signature::sha256_hex};

    const NOW: i64 = 1_767_247_601;
    const KID: &str = "f1da18aa-69e8-44f5-ac1b-5ff45e280b06";
    const BODY: &[u8] =
        br#"{"webhook_type":"ITEM","webhook_code":"ERROR","item_id":"i1","environment":"sandbox"}"#;

    fn key() -> SigningKey {
        SigningKey::from_slice(&[7; 32]).unwrap()
    }

    fn jwk(changes: &[(&str, Value)]) -> String {
        let point = key().verifying_key().to_sec1_point(false);
        let mut key = serde_json::json!({
            "alg": "ES256", "kty": "EC", "crv": "P-256", "use": "sig", "kid": KID, "created_at": 1, "expired_at": null,
            "x": URL_SAFE_NO_PAD.encode(point.x().unwrap()), "y": URL_SAFE_NO_PAD.encode(point.y().unwrap()),
        });
        for (name, value) in changes {
            key[name] = value.clone();
        }
        serde_json::json!({"key": key, "request_id": "r"}).to_string()
    }

    fn token(claims: &str) -> String {
        let header = format!(r#"{{"alg":"ES256","kid":"{KID}","typ":"JWT"}}"#);
        let signed = [URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims)].join(".");
        let signature: Signature = key().sign(signed.as_bytes());
        [signed, URL_SAFE_NO_PAD.encode(signature.to_bytes())].join(".")
    }

    fn token_for(body: &[u8], issued_unix: i64) -> String {
        token(&format!(r#"{{"iat":{issued_unix},"request_body_sha256":"{}"}}"#, sha256_hex(body)))
    }

    fn verify<'a>(token: &str, body: &'a [u8], key: Option<&str>) -> Result<Verified<'a>, Rejection> {
        let headers = Box::leak(Box::new(Headers::from_iter([(TOKEN_HEADER, token)])));
        let request = Request { method: METHOD, url: "", headers, body };
        Plaid.verify(&request, &Settings::new(&Plaid, Secrets::default()), &Context::at(NOW).with_key(key))
    }

    fn reason<T>(verdict: Result<T, Rejection>) -> Option<&'static str> {
        verdict.err().map(|rejection| rejection.reason())
    }

    #[test]
    fn fields_become_an_event() {
        let verified = verify(&token_for(BODY, NOW), BODY, Some(&jwk(&[]))).unwrap();
        let [event] = <[_; 1]>::try_from(verified.events).unwrap();
        assert_eq!((event.id, event.event_type.as_str()), (None, "plaid.item.error"));
        assert_eq!((event.livemode, event.subject.as_deref()), (Some(false), Some("i1")));
        assert_eq!(event.payload.as_bytes(), BODY);
    }

    #[test]
    fn the_time_of_the_token_tells_two_like_bodies_apart() {
        let facts =
            |issued| verify(&token_for(BODY, issued), BODY, Some(&jwk(&[]))).unwrap().events[0].fact.clone();
        assert_eq!(facts(NOW - 5), facts(NOW - 5));
        assert_ne!(facts(NOW - 5), facts(NOW - 4));
    }

    #[test]
    fn every_flipped_bit_of_the_body_is_refused() {
        let token = token_for(BODY, NOW);
        for bit in 0..BODY.len() * 8 {
            let mut flipped = BODY.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let refused = verify(&token, Box::leak(flipped.into()), Some(&jwk(&[])));
            assert_eq!(reason(refused), Some("signature_mismatch"), "{bit}");
        }
    }

    #[test]
    fn the_key_must_be_the_one_that_the_token_names() {
        let token = token_for(BODY, NOW);
        assert_eq!(reason(verify(&token, BODY, None)), Some("key_untrusted"));
        for (name, value) in [
            ("kid", Value::from("another")),
            ("kty", "RSA".into()),
            ("crv", "P-384".into()),
            ("alg", "HS256".into()),
            ("use", "enc".into()),
            ("x", "AA".into()),
            ("y", Value::Null),
            ("expired_at", NOW.into()),
            ("expired_at", "never".into()),
        ] {
            let refused = verify(&token, BODY, Some(&jwk(&[(name, value)])));
            assert_eq!(reason(refused), Some("key_untrusted"), "{name}");
        }
        for text in ["", "null", "{}", r#"{"key":7}"#, r#"{"error_code":"INVALID_FIELD"}"#] {
            assert_eq!(reason(verify(&token, BODY, Some(text))), Some("key_untrusted"), "{text}");
        }
        assert!(verify(&token, BODY, Some(&jwk(&[("expired_at", (NOW + 1).into())]))).is_ok());
    }

    #[test]
    fn claims_are_read_strictly() {
        let digest = sha256_hex(BODY);
        for (claims, expected) in [
            (format!(r#"{{"iat":{},"request_body_sha256":"{digest}"}}"#, NOW - 300), None),
            (format!(r#"{{"iat":{},"request_body_sha256":"{digest}"}}"#, NOW - 301), Some("signature_stale")),
            (format!(r#"{{"iat":{},"request_body_sha256":"{digest}"}}"#, NOW + 301), Some("signature_stale")),
            (format!(r#"{{"iat":"{NOW}","request_body_sha256":"{digest}"}}"#), Some("signature_malformed")),
            (format!(r#"{{"request_body_sha256":"{digest}"}}"#), Some("signature_malformed")),
            (format!(r#"{{"iat":{NOW}}}"#), Some("signature_malformed")),
            (format!(r#"{{"iat":{NOW},"request_body_sha256":""}}"#), Some("signature_malformed")),
            ("[]".to_owned(), Some("signature_malformed")),
        ] {
            assert_eq!(reason(verify(&token(&claims), BODY, Some(&jwk(&[])))), expected, "{claims}");
        }
    }

    #[test]
    fn the_key_is_asked_for_at_plaid() {
        let settings =
            Settings::new(&Plaid, Secrets::default()).with_option(CLIENT_ID, "c").with_option(SECRET, "s");
        let headers = Headers::from_iter([(TOKEN_HEADER, token_for(BODY, NOW))]);
        let mut request = Request { method: METHOD, url: "", headers: &headers, body: BODY };
        let source = |request: &Request<'_>, settings: &Settings| Plaid.key_source(request, settings);
        let body = format!(r#"{{"client_id":"c","key_id":"{KID}","secret":"s"}}"#);
        let expected = KeySource::answer(PRODUCTION_KEYS_URL, body.clone());
        assert_eq!(source(&request, &settings), Ok(Some(expected)));
        let sandbox = settings.clone().with_option(ENVIRONMENT, SANDBOX);
        assert_eq!(source(&request, &sandbox), Ok(Some(KeySource::answer(SANDBOX_KEYS_URL, body))));
        request.method = "GET";
        assert_eq!(source(&request, &settings), Err(Rejection::MethodNotAllowed));
    }
}
