//! The small tools that signature schemes are made of: keyed digests, strict readers, comparison, freshness.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD as BASE64_URL},
};
use hmac::{
    EagerHash, Hmac, KeyInit, Mac,
    digest::{Key, Output},
};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use subtle::{Choice, ConstantTimeEq};

use crate::{Rejection, Request, Secret, Secrets, Settings, event::is_short_text};

/// Version in front of a signature of the scheme `v0`, with its sign.
pub const V0_PREFIX: &str = "v0=";

/// What stands before the digest in an `X-Hub-Signature` of SHA-256, and in the headers that were made after it.
pub const SHA256_PREFIX: &str = "sha256=";

/// HMAC-SHA256 over the concatenation of `parts`, which are never copied together.
#[must_use]
pub fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    hmac::<Sha256>(key, parts).into()
}

/// HMAC-SHA1 in the same way, for the providers that know no better. As a keyed digest it is not broken.
#[must_use]
pub fn hmac_sha1(key: &[u8], parts: &[&[u8]]) -> [u8; 20] {
    hmac::<Sha1>(key, parts).into()
}

/// HMAC-SHA512 in the same way.
#[must_use]
pub fn hmac_sha512(key: &[u8], parts: &[&[u8]]) -> [u8; 64] {
    hmac::<Sha512>(key, parts).into()
}

fn hmac<D: EagerHash + Digest>(key: &[u8], parts: &[&[u8]]) -> Output<Hmac<D>> {
    let mut mac = Hmac::<D>::new(&hmac_key_block::<D>(key));
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes()
}

/// The key as one block, by the rule of RFC 2104: a key longer than a block is hashed, then filled up with
/// zeros. Done here because the constructor that takes a slice has an error path that cannot be taken.
fn hmac_key_block<D: EagerHash + Digest>(key: &[u8]) -> Key<Hmac<D>> {
    let mut block = Key::<Hmac<D>>::default();
    if key.len() <= block.len() {
        block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    } else {
        block.iter_mut().zip(D::digest(key)).for_each(|(to, from)| *to = from);
    }
    block
}

/// Whether one of `offered` equals `expected`. All are compared, each in constant time, so the time taken tells
/// nothing but how many there were, which the sender knows.
#[must_use]
pub fn any_equal<const N: usize>(expected: &[u8; N], offered: &[[u8; N]]) -> bool {
    let none = Choice::from(0);
    offered.iter().fold(none, |found, one| found | expected.as_slice().ct_eq(one.as_slice())).into()
}

/// Refuses a request none of whose signatures was made with one of the secrets. `digest` says what a signature
/// with this secret would be. All pairs are compared, so the time taken does not tell which one it was.
///
/// # Errors
/// [`Rejection::NoSecret`] or [`Rejection::SignatureMismatch`].
pub fn require_match<const N: usize>(
    secrets: &Secrets,
    offered: &[[u8; N]],
    digest: impl Fn(&Secret) -> [u8; N],
) -> Result<(), Rejection> {
    if secrets.is_empty() {
        return Err(Rejection::NoSecret);
    }
    let fits = secrets.iter().fold(false, |fits, secret| fits | any_equal(&digest(secret), offered));
    if fits { Ok(()) } else { Err(Rejection::SignatureMismatch) }
}

/// Refuses what is neither a configured text nor equal to one: tokens and passwords that are compared as they are.
/// The comparison is of digests, so it takes no account of how long a secret is.
///
/// # Errors
/// [`Rejection::NoSecret`] or [`Rejection::SignatureMismatch`].
pub fn require_equal(secrets: &Secrets, offered: &str) -> Result<(), Rejection> {
    let digest = |text: &str| <[u8; 32]>::from(Sha256::digest(text));
    require_match(secrets, &[digest(offered)], |secret| digest(secret.expose()))
}

/// Refuses a request whose header is not the HMAC-SHA256 of `parts`, keyed with the text of a secret. This is the
/// commonest scheme: the header holds the digest and nothing else, `decode` reads its encoding, and no time is signed.
///
/// # Errors
/// [`Rejection::NoSecret`], [`Rejection::SignatureMissing`], [`Rejection::SignatureMalformed`] or
/// [`Rejection::SignatureMismatch`].
pub fn require_hmac_header(
    request: &Request<'_>,
    secrets: &Secrets,
    header: &str,
    decode: fn(&str) -> Option<[u8; 32]>,
    parts: &[&[u8]],
) -> Result<(), Rejection> {
    if secrets.is_empty() {
        return Err(Rejection::NoSecret);
    }
    let text = request.headers.signature(header)?;
    let offered = decode(text).ok_or(Rejection::SignatureMalformed("not one digest in its encoding"))?;
    require_match(secrets, &[offered], |secret| hmac_sha256(secret.expose().as_bytes(), parts))
}

/// SHA-256.
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// SHA-256 as lower-case hex: how a long text becomes part of an identity.
#[must_use]
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Writes base64 with its padding.
#[must_use]
pub fn encode_base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Refuses a signature that is not HMAC-SHA256 over the concatenation of `signed` with the text of one of the secrets,
/// and says which secret it was, for answers that have to be made with the same one. All secrets are tried.
///
/// # Errors
/// [`Rejection::NoSecret`] or [`Rejection::SignatureMismatch`].
pub fn require_hmac_sha256<'s>(
    secrets: &'s Secrets,
    offered: &[u8; 32],
    signed: &[&[u8]],
) -> Result<&'s Secret, Rejection> {
    if secrets.is_empty() {
        return Err(Rejection::NoSecret);
    }
    let fitting = secrets.iter().fold(None, |fitting, secret| {
        let digest = hmac_sha256(secret.expose().as_bytes(), signed);
        if any_equal(&digest, std::slice::from_ref(offered)) { Some(secret) } else { fitting }
    });
    fitting.ok_or(Rejection::SignatureMismatch)
}

/// Refuses a request that is not signed, freshly, by the scheme `v0`, which is Slack's and Zoom's: one header has
/// `v0=<hex>`, another one the time in seconds since 1970, and the digest is HMAC-SHA256 over `v0:<time>:<body>`,
/// keyed with the secret's text. Says which secret it was.
///
/// # Errors
/// [`Rejection::NoSecret`] and all of those about signatures.
pub fn require_v0<'s>(
    request: &Request<'_>,
    settings: &'s Settings,
    now_unix: i64,
    signature_header: &str,
    timestamp_header: &str,
) -> Result<&'s Secret, Rejection> {
    settings.require_secrets()?;
    let signature = request.headers.signature(signature_header)?;
    let timestamp = request.headers.signature(timestamp_header)?;
    let offered = signature.strip_prefix(V0_PREFIX).and_then(decode_hex_lower::<32>);
    let offered = offered.ok_or(Rejection::SignatureMalformed("not `v0=` and 64 lower-case hex digits"))?;
    let signed_unix = parse_unix_seconds(timestamp)
        .ok_or(Rejection::SignatureMalformed("the timestamp is not a count of seconds"))?;
    let secret = require_hmac_sha256(&settings.secrets, &offered, &v0_parts(timestamp, request.body))?;
    require_fresh(signed_unix, now_unix, settings.tolerance_seconds)?;
    Ok(secret)
}

/// The bytes that the scheme `v0` signs, in parts.
pub(crate) fn v0_parts<'a>(timestamp: &'a str, body: &'a [u8]) -> [&'a [u8]; 4] {
    [b"v0:", timestamp.as_bytes(), b":", body]
}

/// Whether a text may be taken for a challenge that is answered with its digest under the secret: 1–200 ASCII letters,
/// digits and `-._~+/=`, which all forms of base64 and UUIDs are made of.
///
/// The digest of anything else is not given away. Where a challenge is not signed, or signed under the same key as
/// bodies, somebody who may choose it freely would choose a body, and send that with the answer as its signature.
#[must_use]
pub fn is_challenge(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    is_short_text(text) && text.bytes().all(is_plain)
}

/// Refuses a time outside of the tolerance. It is asked after the signature was found right, so that "stale" in a log
/// means a true signature.
///
/// # Errors
/// [`Rejection::SignatureStale`].
pub fn require_fresh(signed_unix: i64, now_unix: i64, tolerance_seconds: u64) -> Result<(), Rejection> {
    if is_fresh(signed_unix, now_unix, tolerance_seconds) {
        return Ok(());
    }
    Err(Rejection::SignatureStale { age_seconds: now_unix.saturating_sub(signed_unix), tolerance_seconds })
}

/// The same for a time in milliseconds. A fraction of a second counts: with a tolerance of 300 s, 300.001 s are too
/// many.
///
/// # Errors
/// [`Rejection::SignatureStale`].
pub fn require_fresh_ms(signed_unix_ms: i64, now_unix: i64, tolerance_seconds: u64) -> Result<(), Rejection> {
    let whole_seconds = signed_unix_ms.div_euclid(1000);
    let has_fraction = signed_unix_ms.rem_euclid(1000) != 0;
    // Rounded away from the present, so that the fraction is never lost.
    let away = if has_fraction && whole_seconds >= now_unix { 1 } else { 0 };
    require_fresh(whole_seconds + away, now_unix, tolerance_seconds)
}

/// Reads `N` bytes of base64 with its padding, in the one spelling that encoders write. `None` otherwise.
#[must_use]
pub fn decode_base64<const N: usize>(text: &str) -> Option<[u8; N]> {
    BASE64.decode(text).ok()?.try_into().ok()
}

/// Reads base64 of any length, as strictly as [`decode_base64`]: signatures with a key of the provider's own size.
#[must_use]
pub fn decode_base64_bytes(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

/// Reads base64 in the alphabet of URLs and without padding, as JSON Web Tokens have it (RFC 7515, section 2).
#[must_use]
pub fn decode_base64_url(text: &str) -> Option<Vec<u8>> {
    BASE64_URL.decode(text).ok()
}

/// Reads `N` bytes of lower-case hex. Upper-case digits, another length or anything else gives `None`: the SDKs
/// compare the texts, and a second spelling of the same digest would only help someone who probes.
#[must_use]
pub fn decode_hex_lower<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

/// Reads `sha256=` and a digest in lower-case hex: how WebSub and those after it write a signature. `None` otherwise.
#[must_use]
pub fn decode_hub_signature(text: &str) -> Option<[u8; 32]> {
    decode_hex_lower(text.strip_prefix(SHA256_PREFIX)?)
}

/// Writes the HMAC-SHA256 of a body, keyed with the text of a secret, in the same form.
#[must_use]
pub fn hub_signature(secret: &str, body: &[u8]) -> String {
    [SHA256_PREFIX, &hex::encode(hmac_sha256(secret.as_bytes(), &[body]))].concat()
}

/// Reads a count of seconds since 1970: decimal digits without sign, blank or leading zero, so that there is
/// exactly one text for each time. `None` otherwise, and beyond 15 digits.
#[must_use]
pub fn parse_unix_seconds(text: &str) -> Option<i64> {
    let canonical = text == "0" || !text.starts_with('0');
    let digits = text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit());
    if canonical && digits { text.parse().ok() } else { None }
}

/// Whether `signed_unix` lies within the tolerance around `now_unix`, edges included. Times in the future count
/// like those in the past: a one-sided check takes a signature that was dated ahead for as long as its date is.
/// A tolerance of 0 asks for the very second, it does not switch the check off.
#[must_use]
pub fn is_fresh(signed_unix: i64, now_unix: i64, tolerance_seconds: u64) -> bool {
    signed_unix.abs_diff(now_unix) <= tolerance_seconds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Headers;

    #[test]
    fn hmac_agrees_with_rfc_4231() {
        // Test cases 1, 2 and 6: a short key, a key of text, and one that is longer than a block.
        let cases: [(Vec<u8>, &[u8], &str); 3] = [
            (vec![0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (
                b"Jefe".to_vec(),
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                vec![0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ];
        for (key, message, digest) in cases {
            let (start, end) = message.split_at(5);
            assert_eq!(hex::encode(hmac_sha256(&key, &[start, end])), digest);
        }
    }

    #[test]
    fn hmac_sha1_agrees_with_rfc_2202() {
        let cases: [(Vec<u8>, &[u8], &str); 2] = [
            (vec![0x0b; 20], b"Hi There", "b617318655057264e28bc0b6fb378c8ef146be00"),
            (
                vec![0xaa; 80],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "aa4ae5e15272d00e95705637ce8a3b55ed402112",
            ),
        ];
        for (key, message, digest) in cases {
            assert_eq!(hex::encode(hmac_sha1(&key, &[message])), digest);
        }
    }

    #[test]
    fn base64_has_one_spelling() {
        assert_eq!(decode_base64::<2>("AP8="), Some([0, 255]));
        for text in ["AP8", "AP8==", "AP9=", " AP8=", "AP8=\n", "AP-_", "", "AA=="] {
            assert_eq!(decode_base64::<2>(text), None, "{text}");
        }
        assert_eq!(decode_base64_bytes("AP8="), Some(vec![0, 255]));
        assert_eq!(decode_base64_url("_-8"), Some(vec![255, 239]));
        for text in ["_-8=", "/+8", "_-9", " _-8", "_"] {
            assert_eq!(decode_base64_url(text), None, "{text}");
        }
    }

    #[test]
    fn base64_and_digests_are_written() {
        assert_eq!(decode_base64::<2>(&encode_base64(&[0, 255])), Some([0, 255]));
        // FIPS 180-4, the digest of the empty text.
        assert_eq!(sha256_hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn a_header_that_is_one_digest() {
        let (first, second) = (Secrets::from_list(["one", "two"]), Secrets::from_list(["three"]));
        let digest = hex::encode(hmac_sha256(b"two", &[b"a", b"b"]));
        let verify = |value: &str, secrets: &Secrets| {
            let headers = Headers::from_iter([("X-Signature", value)]);
            let request = Request { method: "POST", url: "", headers: &headers, body: b"" };
            let verdict =
                require_hmac_header(&request, secrets, "x-signature", decode_hex_lower, &[b"a", b"b"]);
            verdict.map_err(|rejection| rejection.reason())
        };
        assert_eq!(verify(&digest, &first), Ok(()));
        assert_eq!(verify(&digest, &second), Err("signature_mismatch"));
        assert_eq!(verify(&digest, &Secrets::default()), Err("no_secret"));
        for value in [String::new(), format!("{digest}, {digest}"), format!("sha256={digest}")] {
            assert_eq!(verify(&value, &first), Err("signature_malformed"), "{value}");
        }
        let headers = Headers::default();
        let request = Request { method: "POST", url: "", headers: &headers, body: b"" };
        let missing = require_hmac_header(&request, &first, "x-signature", decode_hex_lower, &[]);
        assert_eq!(missing, Err(Rejection::SignatureMissing));
    }

    #[test]
    fn tokens_are_equal_to_the_byte_or_not_at_all() {
        let secrets = Secrets::from_list(["token-one", "token-two"]);
        assert_eq!(require_equal(&secrets, "token-two"), Ok(()));
        for offered in ["", "token-on", "token-one ", "Token-one", "token-onetoken-two"] {
            assert_eq!(require_equal(&secrets, offered), Err(Rejection::SignatureMismatch), "{offered}");
        }
        assert_eq!(require_equal(&Secrets::default(), ""), Err(Rejection::NoSecret));
    }

    #[test]
    fn the_secret_that_fits_is_told() {
        let secrets = Secrets::from_list(["one", "two", "three"]);
        let offered = hmac_sha256(b"two", &[b"body"]);
        let fitting = require_hmac_sha256(&secrets, &offered, &[b"bo", b"dy"]).map(Secret::expose);
        assert_eq!(fitting, Ok("two"));
        let refused = |secrets: &Secrets, body: &[u8]| require_hmac_sha256(secrets, &offered, &[body]).err();
        assert_eq!(refused(&secrets, b"bodies"), Some(Rejection::SignatureMismatch));
        assert_eq!(refused(&Secrets::from_list(["one"]), b"body"), Some(Rejection::SignatureMismatch));
        assert_eq!(refused(&Secrets::default(), b"body"), Some(Rejection::NoSecret));
    }

    #[test]
    fn a_challenge_is_never_a_body() {
        for text in ["a", "9b4507b3-9040-4669", "AP_-~.+/8==", &"a".repeat(200)] {
            assert!(is_challenge(text), "{text}");
        }
        for text in ["", "{}", "[1]", "v0:1:x", "a b", "a\"", "é", "a\n", "a&b", "a%20", &"a".repeat(201)] {
            assert!(!is_challenge(text), "{text}");
        }
    }

    #[test]
    fn any_of_several_may_be_equal() {
        let (a, b) = ([1; 32], [2; 32]);
        assert!(any_equal(&a, &[b, a]) && any_equal(&a, &[a, b]));
        assert!(!any_equal(&a, &[b, b]) && !any_equal(&a, &[]));
    }

    #[test]
    fn hex_is_lower_case_and_of_its_length() {
        assert_eq!(decode_hex_lower::<2>("0aff"), Some([10, 255]));
        for text in ["0aFF", "0af", "0aff0", "0aff00", "0a f", "0xff", "0afg", "", "0afé"] {
            assert_eq!(decode_hex_lower::<2>(text), None, "{text}");
        }
    }

    #[test]
    fn a_hub_signature_names_its_algorithm() {
        // The vector in the documentation of GitHub.
        let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(hub_signature("It's a Secret to Everybody", b"Hello, World!"), signature);
        assert_eq!(decode_hub_signature(signature).map(hex::encode).as_deref(), signature.get(7..));
        for text in ["", "sha256=", "SHA256=757107", &signature["sha256=".len()..], &signature[..70]] {
            assert_eq!(decode_hub_signature(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_has_one_spelling() {
        assert_eq!(parse_unix_seconds("1767237943"), Some(1_767_237_943));
        assert_eq!(parse_unix_seconds("0"), Some(0));
        for text in
            ["", "-1", "+1", " 1", "1 ", "01", "00", "1.0", "1e3", "abc", "1abc", "١", "9999999999999999"]
        {
            assert_eq!(parse_unix_seconds(text), None, "{text}");
        }
    }

    #[test]
    fn freshness_has_two_sides() {
        for (signed, tolerance, fresh) in [
            (700, 300, true),
            (699, 300, false),
            (1300, 300, true),
            (1301, 300, false),
            (1000, 0, true),
            (999, 0, false),
            (1001, 0, false),
            (i64::MIN, 300, false),
            (i64::MAX, 300, false),
        ] {
            assert_eq!(is_fresh(signed, 1000, tolerance), fresh, "{signed} ± {tolerance}");
        }
    }

    #[test]
    fn freshness_in_milliseconds_keeps_the_edge() {
        for (signed_ms, fresh) in [
            (700_000, true),
            (699_999, false),
            (999_999, true),
            (1_000_001, true),
            (1_300_000, true),
            (1_300_001, false),
            (i64::MIN, false),
            (i64::MAX, false),
        ] {
            assert_eq!(require_fresh_ms(signed_ms, 1000, 300).is_ok(), fresh, "{signed_ms}");
        }
    }
}
