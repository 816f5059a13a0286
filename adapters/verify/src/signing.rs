//! Signs payloads the way providers do, for tests, benches and the local smoke run.
//!
//! One function per scheme, named `sign_` and the provider, which takes what the provider would use and gives the
//! value of its header. Nothing in the gateway's own path calls these.

use crate::{signature::hmac_sha256, stripe};

/// The value of `Stripe-Signature` for a body that Stripe would send at `timestamp_unix`, with one `v1`.
#[must_use]
pub fn sign_stripe(secret: &str, timestamp_unix: i64, body: &[u8]) -> String {
    let timestamp = timestamp_unix.to_string();
    let digest = hmac_sha256(secret.as_bytes(), &stripe::signed_parts(&timestamp, body));
    format!("{}={timestamp},{}={}", stripe::TIMESTAMP_KEY, stripe::SIGNATURE_KEY, hex::encode(digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_stripes_form() {
        // Same value by `printf '1767237943.{}' | openssl dgst -sha256 -hmac whsec_example`.
        let header = sign_stripe("whsec_example", 1_767_237_943, b"{}");
        assert_eq!(
            header,
            "t=1767237943,v1=57af537896f0fa622a68869c8bff861c3eaaa5f5ef5b607c9d853f9ccc03e142"
        );
    }
}
