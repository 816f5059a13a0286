//! Why a request was refused: one answer for the sender, one reason for the operator.
//!
//! The two are apart on purpose. A sender learns which kind of fault it was, but never which part of a signature
//! was right; the reason in the log is exact, and holds neither secrets nor signatures nor pieces of the body.

/// Why a request was refused. `Display` is the sentence for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The deployment has no secret, so nothing can be verified and nothing is let through.
    #[error("no usable secret is configured for this provider")]
    NoSecret,
    /// The provider never uses this method.
    #[error("the method is not one that the provider uses")]
    MethodNotAllowed,
    /// The provider never sends this content type.
    #[error("the content type is not one that the provider sends")]
    UnsupportedMediaType,
    /// The header that carries the signature is absent.
    #[error("the signature header is missing")]
    SignatureMissing,
    /// The header that carries the signature does not have its form; the text says what is wrong with it.
    #[error("the signature header cannot be read: {0}")]
    SignatureMalformed(&'static str),
    /// None of the signatures was made over this body with one of the secrets.
    #[error("no signature fits the body and a configured secret")]
    SignatureMismatch,
    /// The signature is right, but was made too long ago or too far in the future: a replay, or a clock that is off.
    #[error(
        "the signature is right but {age_seconds} s old, and {tolerance_seconds} s are tolerated either way"
    )]
    SignatureStale {
        /// The gateway's time minus the signed time; negative when the signature is from the future.
        age_seconds: i64,
        /// The configured tolerance.
        tolerance_seconds: u64,
    },
    /// The signature is right and fresh, but made by or for somebody else than this endpoint is set up for: a topic,
    /// a service account or an audience of others. The text says which.
    #[error("the signature is right, but not meant for this endpoint: {0}")]
    SignatureForeign(&'static str),
    /// The signature is right, but the body is not an event; the text says what is wrong with it.
    #[error("the body cannot be read: {0}")]
    Unreadable(&'static str),
    /// The key that the request is said to be signed with is not one to be trusted; the text says why.
    #[error("the key is not to be trusted: {0}")]
    KeyUntrusted(&'static str),
    /// The key that the provider publishes could not be had.
    #[error("the provider's key could not be fetched")]
    KeyUnavailable,
    /// A handshake without the token that was agreed on, or to an endpoint that is not set up for one.
    #[error("the handshake is not one that the endpoint is set up for")]
    HandshakeRefused,
}

impl Rejection {
    /// HTTP status of the answer.
    ///
    /// A missing secret is our fault and not the sender's: 503 makes providers that do not repeat after a 4xx
    /// keep the event until the secret is there.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Unreadable(_) => 400,
            Self::SignatureMissing
            | Self::SignatureMalformed(_)
            | Self::SignatureMismatch
            | Self::SignatureStale { .. }
            | Self::SignatureForeign(_)
            | Self::KeyUntrusted(_) => 401,
            Self::HandshakeRefused => 403,
            Self::MethodNotAllowed => 405,
            Self::UnsupportedMediaType => 415,
            Self::NoSecret | Self::KeyUnavailable => 503,
        }
    }

    /// Public machine-readable name, stable. Everything about signatures has the same one.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable_body",
            Self::SignatureMissing
            | Self::SignatureMalformed(_)
            | Self::SignatureMismatch
            | Self::SignatureStale { .. }
            | Self::SignatureForeign(_)
            | Self::KeyUntrusted(_) => "invalid_signature",
            Self::HandshakeRefused => "handshake_refused",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::NoSecret => "not_configured",
            Self::KeyUnavailable => "key_unavailable",
        }
    }

    /// Public sentence that goes with [`Rejection::code`].
    #[must_use]
    pub fn public_message(&self) -> &'static str {
        match self.code() {
            "unreadable_body" => "The body is not an event that this endpoint can read.",
            "invalid_signature" => "The signature is missing, wrong or not fresh.",
            "method_not_allowed" => "This endpoint does not take that method.",
            "unsupported_media_type" => "This endpoint does not take that content type.",
            "handshake_refused" => "The handshake does not bring the right token.",
            _ => "This endpoint cannot verify requests at the moment.",
        }
    }

    /// Whether the same request might pass once secrets, settings or the gateway itself are mended, so that it is worth being
    /// kept. A request without a signature never will, and most of what strangers send is of that kind.
    #[must_use]
    pub fn may_pass_later(&self) -> bool {
        !matches!(self, Self::SignatureMissing | Self::MethodNotAllowed | Self::HandshakeRefused)
    }

    /// Internal machine-readable name for logs and metrics, stable; finer than [`Rejection::code`] and not for
    /// the sender.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoSecret => "no_secret",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::SignatureMissing => "signature_missing",
            Self::SignatureMalformed(_) => "signature_malformed",
            Self::SignatureMismatch => "signature_mismatch",
            Self::SignatureStale { .. } => "signature_stale",
            Self::SignatureForeign(_) => "signature_foreign",
            Self::Unreadable(_) => "unreadable_body",
            Self::KeyUntrusted(_) => "key_untrusted",
            Self::KeyUnavailable => "key_unavailable",
            Self::HandshakeRefused => "handshake_refused",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Rejection::{self, *};

    #[test]
    fn every_rejection_has_its_answer() {
        let stale = SignatureStale { age_seconds: 301, tolerance_seconds: 300 };
        let table: [(Rejection, u16, &str, &str); 12] = [
            (NoSecret, 503, "not_configured", "no_secret"),
            (MethodNotAllowed, 405, "method_not_allowed", "method_not_allowed"),
            (UnsupportedMediaType, 415, "unsupported_media_type", "unsupported_media_type"),
            (SignatureMissing, 401, "invalid_signature", "signature_missing"),
            (SignatureMalformed("x"), 401, "invalid_signature", "signature_malformed"),
            (SignatureMismatch, 401, "invalid_signature", "signature_mismatch"),
            (stale, 401, "invalid_signature", "signature_stale"),
            (SignatureForeign("x"), 401, "invalid_signature", "signature_foreign"),
            (Unreadable("x"), 400, "unreadable_body", "unreadable_body"),
            (KeyUntrusted("x"), 401, "invalid_signature", "key_untrusted"),
            (KeyUnavailable, 503, "key_unavailable", "key_unavailable"),
            (HandshakeRefused, 403, "handshake_refused", "handshake_refused"),
        ];
        for (rejection, status, code, reason) in table {
            assert_eq!((rejection.status(), rejection.code(), rejection.reason()), (status, code, reason));
        }
    }

    #[test]
    fn a_sender_cannot_tell_signature_faults_apart() {
        let stale = SignatureStale { age_seconds: 301, tolerance_seconds: 300 };
        for rejection in
            [SignatureMalformed("x"), SignatureMismatch, stale, SignatureForeign("x"), KeyUntrusted("x")]
        {
            assert_eq!(rejection.status(), SignatureMissing.status());
            assert_eq!(rejection.public_message(), SignatureMissing.public_message());
        }
    }

    #[test]
    fn the_log_sentence_is_exact() {
        let stale = SignatureStale { age_seconds: -301, tolerance_seconds: 300 };
        let sentence = "the signature is right but -301 s old, and 300 s are tolerated either way";
        assert_eq!(stale.to_string(), sentence);
    }
}
