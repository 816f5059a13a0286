//! Public-key arithmetic by RustCrypto, where there is no platform that brings its own: in tests and tools.

use ed25519_dalek::{Signature as Ed25519Signature, VerifyingKey as Ed25519Key};
use p256::ecdsa::{Signature, VerifyingKey, signature::Verifier as _};
use rsa::Pkcs1v15Sign;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use x509_cert::spki::{DecodePublicKey as _, SubjectPublicKeyInfoRef};

use crate::public_key::{Check, Scheme, Verifier};

/// RustCrypto.
#[derive(Debug, Clone, Copy)]
pub struct RustCrypto;

impl Verifier for RustCrypto {
    fn has_signed(&self, check: &Check<'_>) -> bool {
        let verified = match check.scheme {
            Scheme::RsaSha1 => rsa(check, Pkcs1v15Sign::new::<Sha1>(), &Sha1::digest(check.message)),
            Scheme::RsaSha256 => rsa(check, Pkcs1v15Sign::new::<Sha256>(), &Sha256::digest(check.message)),
            Scheme::P256Sha256 => p256(check),
            Scheme::Ed25519 => ed25519(check),
        };
        verified.is_some()
    }
}

fn rsa(check: &Check<'_>, padding: Pkcs1v15Sign, digest: &[u8]) -> Option<()> {
    let key = rsa::PublicKey::try_from(SubjectPublicKeyInfoRef::try_from(check.key).ok()?).ok()?;
    key.verify(padding, digest, check.signature).ok()
}

fn p256(check: &Check<'_>) -> Option<()> {
    let key = VerifyingKey::from_public_key_der(check.key).ok()?;
    key.verify(check.message, &Signature::from_slice(check.signature).ok()?).ok()
}

/// Strictly: no key of low order, and one spelling of each signature.
fn ed25519(check: &Check<'_>) -> Option<()> {
    let info = SubjectPublicKeyInfoRef::try_from(check.key).ok()?;
    let key = Ed25519Key::from_bytes(info.subject_public_key.as_bytes()?.try_into().ok()?).ok()?;
    key.verify_strict(check.message, &Ed25519Signature::from_slice(check.signature).ok()?).ok()
}
