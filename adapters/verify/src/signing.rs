//! Signs requests the way providers do, for tests, benches, the local smoke run and test events.
//!
//! Each provider whose secret is shared has a function `sign` in its file. Nothing in the gateway's own path calls
//! these.

use crate::providers;
use crate::signature::{V0_PREFIX, hmac_sha256, sha256_hex, v0_parts};

/// A request on its way to a webhook, as its provider would send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Upper-case method.
    pub method: &'static str,
    /// Where it goes; some providers sign it.
    pub url: String,
    /// Its headers.
    pub headers: Vec<(&'static str, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Outgoing {
    /// A POST.
    #[must_use]
    pub fn post(url: impl Into<String>, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type", media_type.to_owned())];
        Self { method: "POST", url: url.into(), headers, body: body.into() }
    }

    /// The same with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The same with a header that the provider always sends, unless the request has it already.
    #[must_use]
    pub fn with_usual_header(self, name: &'static str, value: impl Into<String>) -> Self {
        let has_it = self.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
        if has_it { self } else { self.with_header(name, value) }
    }

    /// An id for this body: the same body is a retry.
    #[must_use]
    pub fn body_id(&self) -> String {
        sha256_hex(&self.body)
    }
}

/// Signs a request with a secret as the provider does at a time in seconds since 1970. Most add headers, some write
/// into the body.
pub type Sign = fn(Outgoing, secret: &str, now_unix: i64) -> Outgoing;

/// How a provider signs; `None` where only the provider itself can.
#[must_use]
pub fn signer(provider: &str) -> Option<Sign> {
    SIGNERS.iter().find(|(name, _)| *name == provider).map(|(_, sign)| *sign)
}

const SIGNERS: &[(&str, Sign)] = &[
    ("adyen", providers::adyen::sign),
    ("asana", providers::asana::sign),
    ("bitbucket", providers::bitbucket::sign),
    ("calendly", providers::calendly::sign),
    ("coinbase_commerce", providers::coinbase_commerce::sign),
    ("docusign", providers::docusign::sign),
    ("dropbox", providers::dropbox::sign),
    ("github", providers::github::sign),
    ("gitlab", providers::gitlab::sign),
    ("hubspot", providers::hubspot::sign),
    ("intercom", providers::intercom::sign),
    ("lemonsqueezy", providers::lemonsqueezy::sign),
    ("line", providers::line::sign),
    ("linear", providers::linear::sign),
    ("mailgun", providers::mailgun::sign),
    ("mandrill", providers::mandrill::sign),
    ("meta", providers::meta::sign),
    ("microsoft_graph", providers::microsoft_graph::sign),
    ("mollie", providers::mollie::sign),
    ("openai", providers::openai::sign),
    ("paddle", providers::paddle::sign),
    ("postmark", providers::postmark::sign),
    ("razorpay", providers::razorpay::sign),
    ("shopify", providers::shopify::sign),
    ("slack", providers::slack::sign),
    ("square", providers::square::sign),
    ("standardwebhooks", providers::standardwebhooks::sign),
    ("stripe", providers::stripe::sign),
    ("svix", providers::svix::sign),
    ("trello", providers::trello::sign),
    ("twilio", providers::twilio::sign),
    ("twitter_x", providers::twitter_x::sign),
    ("typeform", providers::typeform::sign),
    ("woocommerce", providers::woocommerce::sign),
    ("xero", providers::xero::sign),
    ("zendesk", providers::zendesk::sign),
    ("zoom", providers::zoom::sign),
];

/// Signs by the scheme `v0` of [`require_v0`](crate::signature::require_v0).
pub(crate) fn sign_v0(
    request: Outgoing,
    secret: &str,
    now_unix: i64,
    signature_header: &'static str,
    timestamp_header: &'static str,
) -> Outgoing {
    let timestamp = now_unix.to_string();
    let digest = hmac_sha256(secret.as_bytes(), &v0_parts(&timestamp, &request.body));
    let signature = [V0_PREFIX, &hex::encode(digest)].concat();
    request.with_header(timestamp_header, timestamp).with_header(signature_header, signature)
}

/// The value of `Stripe-Signature` for a body that Stripe would send at `timestamp_unix`, with one `v1`.
#[must_use]
pub fn sign_stripe(secret: &str, timestamp_unix: i64, body: &[u8]) -> String {
    providers::stripe::SIGNATURE.value(secret, timestamp_unix, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_header_does_not_replace_one_that_is_there() {
        let request = Outgoing::post("", "text/plain", "").with_usual_header("x-a", "1");
        assert_eq!(request.clone().with_usual_header("X-A", "2"), request);
    }

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
