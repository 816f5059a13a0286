//! Public keys of the providers that sign with a private one: RSA, ECDSA on P-256, and Ed25519.
//!
//! Keys are read and judged here; the arithmetic is somebody else's, by [`Verifier`]: the platform's own in a Worker, which is
//! faster than any that could be brought along and takes no room, and that of RustCrypto elsewhere. Nothing here is secret: keys,
//! signatures and messages are all known to whoever sent the request, so there is nothing that the time taken could tell.

use x509_cert::{
    der::{Decode, Reader as _, SliceReader, asn1::UintRef},
    spki::{ObjectIdentifier, SubjectPublicKeyInfoRef},
};

/// Fewer bits than this can be factored by those who care, so such a key proves nothing.
pub const RSA_BITS_MIN: usize = 2048;

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const ELLIPTIC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
/// What stands before the point in every `SubjectPublicKeyInfo` of P-256 (RFC 5480) that is written with both coordinates.
const P256_PREFIX: [u8; 27] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
];
/// The same of Ed25519 (RFC 8410).
const ED25519_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// How something is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// RSA by PKCS#1 v1.5 (RFC 8017, section 8.2) with SHA-1. It is there for providers that still use it; nobody can make a
    /// second message to a given digest yet.
    RsaSha1,
    /// RSA by PKCS#1 v1.5 with SHA-256.
    RsaSha256,
    /// ECDSA on P-256 with SHA-256; the signature is two numbers of 32 bytes each.
    P256Sha256,
    /// Ed25519 (RFC 8032).
    Ed25519,
}

/// The question whether a key has made a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check<'a> {
    /// How.
    pub scheme: Scheme,
    /// The key as `SubjectPublicKeyInfo`, DER.
    pub key: &'a [u8],
    /// What is signed.
    pub message: &'a [u8],
    /// The signature.
    pub signature: &'a [u8],
}

/// Who answers such questions.
pub trait Verifier {
    /// Whether the key made the signature over the message; `false` also for a key or a signature that is none.
    fn has_signed(&self, check: &Check<'_>) -> bool;
}

/// An RSA key.
#[derive(Debug, Clone)]
pub struct RsaKey(Vec<u8>);

impl RsaKey {
    /// Reads a key as it stands in a certificate: `SubjectPublicKeyInfo`, DER. `None` when it is not an RSA key or a
    /// short one.
    #[must_use]
    pub fn from_der(der: &[u8]) -> Option<Self> {
        let info = SubjectPublicKeyInfoRef::try_from(der).ok()?;
        let mut reader = SliceReader::new(info.subject_public_key.as_bytes()?).ok()?;
        let numbers = reader.sequence(|numbers| {
            Ok::<_, x509_cert::der::Error>((UintRef::decode(numbers)?, UintRef::decode(numbers)?))
        });
        let (modulus, _) = numbers.ok()?;
        reader.finish().ok()?;
        let is_long = modulus.as_bytes().len() * 8 >= RSA_BITS_MIN;
        (info.algorithm.oid == RSA && is_long).then(|| Self(der.to_vec()))
    }

    /// Whether this key made the signature over the message, by one of the two RSA schemes.
    #[must_use]
    pub fn has_signed(
        &self,
        verifier: &dyn Verifier,
        scheme: Scheme,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        verifier.has_signed(&Check { scheme, key: &self.0, message, signature })
    }
}

/// A key on the curve P-256.
#[derive(Debug, Clone)]
pub struct P256Key(Vec<u8>);

impl P256Key {
    /// Reads a `SubjectPublicKeyInfo`, DER. `None` when it is not a key of this curve.
    #[must_use]
    pub fn from_der(der: &[u8]) -> Option<Self> {
        let algorithm = SubjectPublicKeyInfoRef::try_from(der).ok()?.algorithm;
        let curve = algorithm.parameters.and_then(|curve| curve.decode_as::<ObjectIdentifier>().ok());
        (algorithm.oid == ELLIPTIC && curve == Some(P256)).then(|| Self(der.to_vec()))
    }

    /// Takes the coordinates of a point. One that is not on the curve has signed nothing.
    #[must_use]
    pub fn from_coordinates(x: &[u8; 32], y: &[u8; 32]) -> Self {
        Self([P256_PREFIX.as_slice(), x, y].concat())
    }

    /// Whether this key made the signature, which is a DER sequence of two numbers and nothing behind it.
    #[must_use]
    pub fn has_signed_der(&self, verifier: &dyn Verifier, message: &[u8], signature: &[u8]) -> bool {
        fixed_numbers(signature).is_some_and(|signature| self.has_signed(verifier, message, &signature))
    }

    /// Whether this key made the signature, which is two numbers of 32 bytes each, as in a JWT.
    #[must_use]
    pub fn has_signed(&self, verifier: &dyn Verifier, message: &[u8], signature: &[u8]) -> bool {
        let check = Check { scheme: Scheme::P256Sha256, key: &self.0, message, signature };
        signature.len() == 64 && verifier.has_signed(&check)
    }
}

/// A DER sequence of two numbers as two times 32 bytes.
fn fixed_numbers(der: &[u8]) -> Option<[u8; 64]> {
    let mut reader = SliceReader::new(der).ok()?;
    let numbers = reader.sequence(|numbers| {
        Ok::<_, x509_cert::der::Error>([UintRef::decode(numbers)?, UintRef::decode(numbers)?])
    });
    let numbers = numbers.ok()?;
    reader.finish().ok()?;
    let mut fixed = [0; 64];
    for (half, number) in fixed.chunks_exact_mut(32).zip(numbers) {
        let start = half.len().checked_sub(number.as_bytes().len())?;
        half.get_mut(start..)?.copy_from_slice(number.as_bytes());
    }
    Some(fixed)
}

/// A key of Ed25519.
#[derive(Debug, Clone)]
pub struct Ed25519Key(Vec<u8>);

impl Ed25519Key {
    /// Takes the 32 bytes of a key.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self([ED25519_PREFIX.as_slice(), bytes].concat())
    }

    /// Whether this key made the signature.
    #[must_use]
    pub fn has_signed(&self, verifier: &dyn Verifier, message: &[u8], signature: &[u8; 64]) -> bool {
        verifier.has_signed(&Check { scheme: Scheme::Ed25519, key: &self.0, message, signature })
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};

    use super::*;
    use crate::RustCrypto;

    /// Of 1,024 bits, made with `openssl genrsa 1024 | openssl rsa -pubout -outform DER`.
    const SHORT_RSA: &str = "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDdtygl8tdT3sj69mWziFRde4BFIrWX8BVjDze5M4aWmzMs7FyE\
        /2XXe1Pw1drVAUuIT9zK5yVl4wG2n9Bj6TmPb+OFZTNXxmZm8PHPG9VaVOoUwjUzVwisrV+p+4WTVD/m5z9S7ifH\
        sbGn130wSiUKDj5iQP0DeRehR6K5D1xrkwIDAQAB";

    #[test]
    fn what_is_not_a_key_of_the_kind_is_none() {
        let short = BASE64.decode(SHORT_RSA).unwrap();
        for der in [&b""[..], b"\x30\x00", &short] {
            assert!(RsaKey::from_der(der).is_none() && P256Key::from_der(der).is_none());
        }
        let point = P256Key::from_coordinates(&[1; 32], &[1; 32]);
        assert!(P256Key::from_der(&point.0).is_some(), "it has the form of a key");
        assert!(!point.has_signed(&RustCrypto, b"", &[1; 64]), "but the point is not on the curve");
        assert!(!Ed25519Key::from_bytes(&[0; 32]).has_signed(&RustCrypto, b"", &[0; 64]));
    }

    #[test]
    fn numbers_of_a_signature_are_read_strictly() {
        let one_and_two = |text: &str| fixed_numbers(&hex::decode(text).unwrap());
        let numbers = one_and_two("3006020101020102").unwrap();
        assert_eq!((numbers[31], numbers[63], numbers.iter().filter(|byte| **byte != 0).count()), (1, 2, 2));
        for text in [
            "",
            "3000",
            "3003020101",
            "300602010102010200",
            "30070202000102010200",
            "300602018102010200",
            "3009020101020101020101",
        ] {
            assert_eq!(one_and_two(text), None, "{text}");
        }
    }
}
