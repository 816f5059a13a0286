//! Public keys of the providers that sign with a private one: RSA and ECDSA on P-256.
//!
//! Nothing here is secret: keys, signatures and messages are all known to whoever sent the request, so there is
//! nothing that the time taken could tell.

use p256::ecdsa::{DerSignature, Signature, VerifyingKey, signature::Verifier as _};
use rsa::{Pkcs1v15Sign, traits::PublicKeyParts as _};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use x509_cert::spki::{DecodePublicKey as _, SubjectPublicKeyInfoRef};

/// Fewer bits than this can be factored by those who care, so such a key proves nothing.
pub const RSA_BITS_MIN: usize = 2048;

/// What is signed is a digest of the message, by one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RsaHash {
    /// SHA-1. It is there for providers that still use it; nobody can make a second message to a given digest yet.
    Sha1,
    /// SHA-256.
    Sha256,
}

/// An RSA key that signs by PKCS#1 v1.5 (RFC 8017, section 8.2).
#[derive(Debug, Clone)]
pub struct RsaKey(rsa::PublicKey);

impl RsaKey {
    /// Reads a key as it stands in a certificate: `SubjectPublicKeyInfo`, DER. `None` when it is not an RSA key or a
    /// short one.
    #[must_use]
    pub fn from_der(der: &[u8]) -> Option<Self> {
        let key = rsa::PublicKey::try_from(SubjectPublicKeyInfoRef::try_from(der).ok()?).ok()?;
        (key.size() * 8 >= RSA_BITS_MIN).then_some(Self(key))
    }

    /// Whether this key made the signature over the message.
    #[must_use]
    pub fn has_signed(&self, hash: RsaHash, message: &[u8], signature: &[u8]) -> bool {
        let verified = match hash {
            RsaHash::Sha1 => self.0.verify(Pkcs1v15Sign::new::<Sha1>(), &Sha1::digest(message), signature),
            RsaHash::Sha256 => {
                self.0.verify(Pkcs1v15Sign::new::<Sha256>(), &Sha256::digest(message), signature)
            }
        };
        verified.is_ok()
    }
}

/// A key on the curve P-256 that signs by ECDSA with SHA-256.
#[derive(Debug, Clone)]
pub struct P256Key(VerifyingKey);

impl P256Key {
    /// Reads a `SubjectPublicKeyInfo`, DER. `None` when it is not a key of this curve.
    #[must_use]
    pub fn from_der(der: &[u8]) -> Option<Self> {
        VerifyingKey::from_public_key_der(der).ok().map(Self)
    }

    /// Takes the coordinates of a point. `None` when it is not on the curve.
    #[must_use]
    pub fn from_coordinates(x: &[u8; 32], y: &[u8; 32]) -> Option<Self> {
        let point = [&[UNCOMPRESSED_POINT], x.as_slice(), y].concat();
        VerifyingKey::from_sec1_bytes(&point).ok().map(Self)
    }

    /// Whether this key made the signature, which is a DER sequence of two numbers and nothing behind it.
    #[must_use]
    pub fn has_signed_der(&self, message: &[u8], signature: &[u8]) -> bool {
        DerSignature::from_bytes(signature).is_ok_and(|signature| self.0.verify(message, &signature).is_ok())
    }

    /// Whether this key made the signature, which is two numbers of 32 bytes each, as in a JWT.
    #[must_use]
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        Signature::from_slice(signature).is_ok_and(|signature| self.0.verify(message, &signature).is_ok())
    }
}

/// The first byte of a point that is written with both coordinates (SEC 1, section 2.3.3).
const UNCOMPRESSED_POINT: u8 = 4;

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};

    use super::*;

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
        assert!(rsa::PublicKey::from_public_key_der(&short).is_ok(), "it is a key, and short");
        assert!(P256Key::from_coordinates(&[1; 32], &[1; 32]).is_none(), "the point is not on the curve");
    }
}
