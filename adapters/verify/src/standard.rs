//! The scheme of Standard Webhooks, which several providers share under header names of their own.
//!
//! Facts: the specification (standard-webhooks/standard-webhooks, `spec/standard-webhooks.md`), standardwebhooks 1.1.1 and
//! svix 1.99.1. Three headers hold an id, a time in seconds since 1970 and signatures, which are separated by blanks:
//! `v1,<base64>` is HMAC-SHA256 over `<id>.<time>.<body>`, keyed with the decoded bytes of a secret `whsec_<base64>`;
//! `v1a,<base64>` is Ed25519 over the same, for a public key `whpk_<base64>`.
//!
//! What goes wrong with it elsewhere, and not here: a time in the future that stays good until then, a time of which only
//! the first digits are read, one signature that is looked at where there are several, an empty key.

use base64::{
    Engine as _,
    alphabet::STANDARD as ALPHABET,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD as BASE64},
};
use sha2::{Digest, Sha256};

use crate::{
    Context, Outgoing, Rejection, Request, Secrets, Settings,
    event::is_short_text,
    public_key::{Ed25519Key, Verifier},
    signature::{any_equal, decode_base64, hmac_sha256, parse_unix_seconds, require_fresh},
};

/// How a shared secret begins. It is optional.
pub const SECRET_PREFIX: &str = "whsec_";
/// How a public key begins. It is required: without it, the key that everybody knows would be taken for a secret.
pub const PUBLIC_KEY_PREFIX: &str = "whpk_";
/// Version of a signature with a shared secret. Some dashboards put it before the secret as well.
pub const SHARED_VERSION: &str = "v1";
/// Version of a signature with a private key.
pub const PUBLIC_VERSION: &str = "v1a";
/// Shortest key, in bytes. The specification asks for 24 to 64; a key of less than 128 bits could be guessed, and is
/// rather another text that happens to be base64.
pub const KEY_LENGTH_MIN: usize = 16;
/// Most signatures in one header. There is one for each key that is active at the sender, and each that is made with a
/// private key costs the verifier some time.
pub const SIGNATURES_MAX: usize = 32;

/// Secrets are read with or without the padding at their end, which is easily lost when they are pasted.
const SECRET_BASE64: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The names of the three headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandardHeaders {
    /// Header of the message's id. It is signed and a retry repeats it.
    pub id: &'static str,
    /// Header of the time of this attempt, seconds since 1970.
    pub timestamp: &'static str,
    /// Header of the signatures.
    pub signature: &'static str,
}

impl StandardHeaders {
    /// The names of the specification.
    pub const WEBHOOK: Self =
        Self { id: "webhook-id", timestamp: "webhook-timestamp", signature: "webhook-signature" };
}

/// Refuses a request that is not signed, freshly, by this scheme, and returns the id of its message: 1–200 visible ASCII
/// characters that are signed. All signatures are compared with all keys; a secret that is no key verifies nothing.
///
/// # Errors
/// [`Rejection::NoSecret`] when no secret is a key, and all of those about signatures.
pub fn require_standard<'a>(
    request: &Request<'a>,
    headers: &StandardHeaders,
    settings: &Settings,
    context: &Context<'_>,
) -> Result<&'a str, Rejection> {
    let keys = keys(&settings.secrets);
    if keys.is_empty() {
        return Err(Rejection::NoSecret);
    }
    let id = request.headers.signature(headers.id)?;
    let timestamp = request.headers.signature(headers.timestamp)?;
    let offered = Signatures::parse(request.headers.signature(headers.signature)?)?;
    if !is_short_text(id) {
        return Err(Rejection::SignatureMalformed("the id is not 1 to 200 visible ASCII characters"));
    }
    let signed_unix = parse_unix_seconds(timestamp)
        .ok_or(Rejection::SignatureMalformed("the timestamp is not a number of seconds"))?;
    let message = signed_parts(id, timestamp, request.body);
    if !keys.iter().fold(false, |fits, key| fits | key.has_signed(context.verifier, &message, &offered)) {
        return Err(Rejection::SignatureMismatch);
    }
    require_fresh(signed_unix, context.now_unix, settings.tolerance_seconds)?;
    Ok(id)
}

/// Signs by this scheme with one `v1`. The id of the message is that of the request's header, if it is there already,
/// else one made from the body, so that the same body is a retry. With a secret that is no shared key the request stays
/// unsigned.
#[must_use]
pub fn sign_standard(request: Outgoing, headers: &StandardHeaders, secret: &str, now_unix: i64) -> Outgoing {
    let Some(Key::Shared(key)) = Key::read(secret) else { return request };
    let given = request.headers.iter().find(|(name, _)| *name == headers.id).map(|(_, id)| id.clone());
    let has_id = given.is_some();
    let id = given.unwrap_or_else(|| ["msg_", &hex::encode(Sha256::digest(&request.body))].concat());
    let timestamp = now_unix.to_string();
    let digest = hmac_sha256(&key, &signed_parts(&id, &timestamp, &request.body));
    let signature = [SHARED_VERSION, ",", &BASE64.encode(digest)].concat();
    let request = if has_id { request } else { request.with_header(headers.id, id) };
    request.with_header(headers.timestamp, timestamp).with_header(headers.signature, signature)
}

/// The bytes that are signed, in parts.
fn signed_parts<'a>(id: &'a str, timestamp: &'a str, body: &'a [u8]) -> [&'a [u8]; 5] {
    [id.as_bytes(), b".", timestamp.as_bytes(), b".", body]
}

/// What a secret stands for. No `Debug`, since it holds keys.
enum Key {
    /// Decoded, never short.
    Shared(Vec<u8>),
    Public(Ed25519Key),
}

fn keys(secrets: &Secrets) -> Vec<Key> {
    secrets.iter().filter_map(|secret| Key::read(secret.expose())).collect()
}

impl Key {
    /// Reads a secret as dashboards show it: `whsec_…`, the same without its prefix or with `v1,` in front, `whpk_…`.
    fn read(secret: &str) -> Option<Self> {
        let versions = [SHARED_VERSION, PUBLIC_VERSION];
        let unversioned = secret.split_once(',').filter(|(version, _)| versions.contains(version));
        let secret = unversioned.map_or(secret, |(_, secret)| secret.trim_start());
        if let Some(key) = secret.strip_prefix(PUBLIC_KEY_PREFIX) {
            let bytes = SECRET_BASE64.decode(key).ok()?.try_into().ok()?;
            return Some(Self::Public(Ed25519Key::from_bytes(&bytes)));
        }
        let key = SECRET_BASE64.decode(secret.strip_prefix(SECRET_PREFIX).unwrap_or(secret)).ok()?;
        (key.len() >= KEY_LENGTH_MIN).then_some(Self::Shared(key))
    }

    /// Whether one of the signatures of its own version was made with this key. Digests are compared in constant time;
    /// about a public key there is nothing that the time taken could tell.
    fn has_signed(&self, verifier: &dyn Verifier, message: &[&[u8]], offered: &Signatures) -> bool {
        match self {
            Self::Shared(key) => any_equal(&hmac_sha256(key, message), &offered.shared),
            Self::Public(_) if offered.public.is_empty() => false,
            Self::Public(key) => {
                let message = message.concat();
                offered.public.iter().any(|signature| key.has_signed(verifier, &message, signature))
            }
        }
    }
}

/// The signatures of a header that have the form of one, by version; others can never fit.
struct Signatures {
    shared: Vec<[u8; 32]>,
    public: Vec<[u8; 64]>,
}

impl Signatures {
    /// Reads the header. Unknown versions and signatures in another form are passed over, since they may stand beside a
    /// good one; a header that has no known version at all is not one of this scheme.
    fn parse(header: &str) -> Result<Self, Rejection> {
        let mut read = Self { shared: Vec::new(), public: Vec::new() };
        let mut is_known = false;
        for (index, item) in header.split(' ').filter(|item| !item.is_empty()).enumerate() {
            if index >= SIGNATURES_MAX {
                return Err(Rejection::SignatureMalformed("too many signatures"));
            }
            match item.split_once(',') {
                Some((SHARED_VERSION, signature)) => read.shared.extend(decode_base64::<32>(signature)),
                Some((PUBLIC_VERSION, signature)) => read.public.extend(decode_base64::<64>(signature)),
                _ => continue,
            }
            is_known = true;
        }
        if is_known { Ok(read) } else { Err(Rejection::SignatureMalformed("no v1 or v1a signature")) }
    }
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::{Signer as _, SigningKey};

    use super::*;
    use crate::{Headers, providers::stripe::Stripe};

    const HEADERS: StandardHeaders = StandardHeaders::WEBHOOK;
    /// The vector in the tests of the reference libraries.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const TIMESTAMP: &str = "1614265330";
    const NOW: i64 = 1_614_265_330;
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    /// The id, or the reason for refusing. An empty value of a header is one that is there.
    fn verify(secrets: &[&str], id: &str, timestamp: &str, signature: &str, body: &[u8]) -> String {
        let headers = Headers::from_iter([
            (HEADERS.id, id),
            (HEADERS.timestamp, timestamp),
            (HEADERS.signature, signature),
        ]);
        let request = Request { method: "POST", url: "", headers: &headers, body };
        // Tolerance and secrets are all that is asked of the settings, so any provider's will do.
        let settings = Settings::new(&Stripe, Secrets::from_list(secrets));
        let verdict = require_standard(&request, &HEADERS, &settings, &Context::at(NOW));
        verdict.map_or_else(|rejection| rejection.reason().to_owned(), str::to_owned)
    }

    /// The value of `v1` for the body and a time.
    fn signature_at(timestamp: &str) -> String {
        let Some(Key::Shared(key)) = Key::read(SECRET) else { panic!("a shared key") };
        ["v1,", &BASE64.encode(hmac_sha256(&key, &signed_parts(ID, timestamp, BODY)))].concat()
    }

    #[test]
    fn the_published_vector_is_signed_and_verified() {
        let unsigned = Outgoing::post("", "application/json", BODY).with_header(HEADERS.id, ID);
        let signed = sign_standard(unsigned, &HEADERS, SECRET, NOW);
        let value =
            |name| signed.headers.iter().find(|(header, _)| *header == name).map(|(_, value)| &**value);
        assert_eq!((value(HEADERS.id), value(HEADERS.timestamp)), (Some(ID), Some(TIMESTAMP)));
        assert_eq!(value(HEADERS.signature), Some(SIGNATURE));
        assert_eq!(verify(&[SECRET], ID, TIMESTAMP, SIGNATURE, BODY), ID);
    }

    #[test]
    fn secrets_are_read_as_they_are_shown() {
        let short = ["whsec_", &BASE64.encode([7; KEY_LENGTH_MIN - 1])].concat();
        for (secret, outcome) in [
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", ID),
            ("v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", ID),
            (" v1, whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", ID),
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSv", "signature_mismatch"),
            ("v2,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "no_secret"),
            ("WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "no_secret"),
            ("whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "no_secret"),
            ("whsec_!!not base64!!", "no_secret"),
            ("whsec_", "no_secret"),
            ("v1,", "no_secret"),
            ("v1", "no_secret"),
            ("", "no_secret"),
            (&short, "no_secret"),
        ] {
            assert_eq!(verify(&[secret], ID, TIMESTAMP, SIGNATURE, BODY), outcome, "{secret:?}");
        }
        // With 32 bytes there is padding to lose.
        let padded = BASE64.encode([7; 32]);
        for secret in [padded.as_str(), padded.trim_end_matches('=')] {
            assert!(matches!(Key::read(secret), Some(Key::Shared(key)) if key == [7; 32]), "{secret}");
        }
        // A key whose signatures anybody could make.
        let empty = ["v1,", &BASE64.encode(hmac_sha256(b"", &signed_parts(ID, TIMESTAMP, BODY)))].concat();
        assert_eq!(verify(&["whsec_"], ID, TIMESTAMP, &empty, BODY), "no_secret");
    }

    #[test]
    fn every_bit_that_is_signed_counts() {
        let flipped = |bytes: &[u8]| -> Vec<Vec<u8>> {
            let flip = |bit: usize| {
                bytes.iter().enumerate().map(move |(at, byte)| byte ^ (u8::from(at == bit / 8) << (bit % 8)))
            };
            (0..bytes.len() * 8).map(|bit| flip(bit).collect()).collect()
        };
        let text = |bytes: Vec<u8>| -> String { bytes.into_iter().map(char::from).collect() };
        let refused = |outcome: String| outcome.starts_with("signature_m");
        for body in flipped(BODY) {
            assert_eq!(verify(&[SECRET], ID, TIMESTAMP, SIGNATURE, &body), "signature_mismatch");
        }
        for id in flipped(ID.as_bytes()).into_iter().map(text) {
            assert!(refused(verify(&[SECRET], &id, TIMESTAMP, SIGNATURE, BODY)), "{id:?}");
        }
        for timestamp in flipped(TIMESTAMP.as_bytes()).into_iter().map(text) {
            assert!(refused(verify(&[SECRET], ID, &timestamp, SIGNATURE, BODY)), "{timestamp:?}");
        }
        for signature in flipped(SIGNATURE.as_bytes()).into_iter().map(text) {
            assert!(refused(verify(&[SECRET], ID, TIMESTAMP, &signature, BODY)), "{signature:?}");
        }
    }

    #[test]
    fn any_signature_and_any_secret_may_match() {
        let other = ["v1,", &BASE64.encode([7; 32])].concat();
        let secrets = ["whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", SECRET];
        let digest = SIGNATURE.strip_prefix("v1,").unwrap();
        for (signature, outcome) in [
            (format!("{other} {SIGNATURE}"), ID),
            (format!("{SIGNATURE} {other}"), ID),
            (format!("v2,x {SIGNATURE} v1a,{digest} nonsense"), ID),
            (format!("{other}  {SIGNATURE} "), ID),
            (format!("{other} {other}"), "signature_mismatch"),
            (format!("{SIGNATURE},{other}"), "signature_mismatch"),
            (format!("v1,{}", digest.trim_end_matches('=')), "signature_mismatch"),
            (format!("v1,{digest}0"), "signature_mismatch"),
            (format!("v1a,{digest}"), "signature_mismatch"),
            ("v1,".to_owned(), "signature_mismatch"),
            (digest.to_owned(), "signature_malformed"),
            (format!("V1,{digest}"), "signature_malformed"),
            (format!("v2,{digest}"), "signature_malformed"),
            (format!("v1={digest}"), "signature_malformed"),
            (String::new(), "signature_malformed"),
            (" ".to_owned(), "signature_malformed"),
            (format!("{}{SIGNATURE}", "v2,x ".repeat(SIGNATURES_MAX - 1)), ID),
            (format!("{}{SIGNATURE}", "v2,x ".repeat(SIGNATURES_MAX)), "signature_malformed"),
        ] {
            assert_eq!(verify(&secrets, ID, TIMESTAMP, &signature, BODY), outcome, "{signature}");
        }
    }

    #[test]
    fn times_are_fresh_numbers_and_ids_short_texts() {
        for (timestamp, outcome) in [
            ("1614265030", ID),
            ("1614265029", "signature_stale"),
            ("1614265630", ID),
            ("1614265631", "signature_stale"),
            ("abc", "signature_malformed"),
            ("", "signature_malformed"),
            ("-5", "signature_malformed"),
            ("01614265330", "signature_malformed"),
            ("1614265330.5", "signature_malformed"),
            ("1614265330abc", "signature_malformed"),
            ("1614265330, 1614265330", "signature_malformed"),
        ] {
            let signature = signature_at(timestamp);
            assert_eq!(verify(&[SECRET], ID, timestamp, &signature, BODY), outcome, "{timestamp:?}");
        }
        for id in ["", " ", "a b", "msg_1, msg_1", "é", &"a".repeat(201)] {
            assert_eq!(verify(&[SECRET], id, TIMESTAMP, SIGNATURE, BODY), "signature_malformed", "{id:?}");
        }
    }

    #[test]
    fn a_header_that_is_missing_or_there_twice_is_told() {
        let fields = [(HEADERS.id, ID), (HEADERS.timestamp, TIMESTAMP), (HEADERS.signature, SIGNATURE)];
        let settings = Settings::new(&Stripe, Secrets::from_list([SECRET]));
        let outcome = |headers: Headers| {
            let request = Request { method: "POST", url: "", headers: &headers, body: BODY };
            let verdict = require_standard(&request, &HEADERS, &settings, &Context::at(NOW));
            verdict.map(str::to_owned).map_err(|rejection| rejection.reason())
        };
        assert_eq!(outcome(fields.into_iter().collect()), Ok(ID.to_owned()));
        for field in fields {
            let without = fields.into_iter().filter(|other| *other != field).collect();
            assert_eq!(outcome(without), Err("signature_missing"), "{}", field.0);
            let twice = fields.into_iter().chain([field]).collect();
            assert_eq!(outcome(twice), Err("signature_malformed"), "{}", field.0);
        }
    }

    #[test]
    fn public_keys_verify_their_own_version_only() {
        let signing = SigningKey::from_bytes(&[7; 32]);
        let public = signing.verifying_key().to_bytes();
        let message = signed_parts(ID, TIMESTAMP, BODY).concat();
        let signature = ["v1a,", &BASE64.encode(signing.sign(&message).to_bytes())].concat();
        let key = [PUBLIC_KEY_PREFIX, &BASE64.encode(public)].concat();
        let both = [SIGNATURE, " ", &signature].concat();
        for secrets in [vec![key.as_str()], vec![SECRET, &key]] {
            assert_eq!(verify(&secrets, ID, TIMESTAMP, &signature, BODY), ID);
            assert_eq!(verify(&secrets, ID, TIMESTAMP, &both, BODY), ID);
            assert_eq!(verify(&secrets, ID, TIMESTAMP, &signature, b"{}"), "signature_mismatch");
            assert_eq!(verify(&secrets, "msg_2", TIMESTAMP, &signature, BODY), "signature_mismatch");
        }
        assert_eq!(verify(&[&key], ID, TIMESTAMP, SIGNATURE, BODY), "signature_mismatch");
        assert_eq!(verify(&[SECRET], ID, TIMESTAMP, &signature, BODY), "signature_mismatch");
        // Everybody knows the public key, so an HMAC with it proves nothing.
        let digest = hmac_sha256(&public, &signed_parts(ID, TIMESTAMP, BODY));
        let forged = ["v1,", &BASE64.encode(digest)].concat();
        assert_eq!(verify(&[&key], ID, TIMESTAMP, &forged, BODY), "signature_mismatch");
        // The neutral point: a key for which signatures can be made without a private one.
        let weak = [PUBLIC_KEY_PREFIX, &BASE64.encode([&[1_u8][..], &[0; 31]].concat())].concat();
        let made = ["v1a,", &BASE64.encode([&[1_u8][..], &[0; 63]].concat())].concat();
        assert_eq!(verify(&[&weak], ID, TIMESTAMP, &made, BODY), "signature_mismatch");
        assert_eq!(verify(&["whpk_AAAA"], ID, TIMESTAMP, &signature, BODY), "no_secret");
    }
}
