//! Signing by Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What every secret begins with.
const PREFIX: &str = "whsec_";

/// Signs the messages of one sink.
pub struct Signer(Hmac<Sha256>);

/// Not the key.
impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer")
    }
}

impl Signer {
    /// A signer for a secret of the form `whsec_<base64>`; `None` if it is of another.
    pub fn new(secret: &str) -> Option<Self> {
        let key = BASE64.decode(secret.trim().strip_prefix(PREFIX)?).ok().filter(|key| !key.is_empty())?;
        Hmac::new_from_slice(&key).ok().map(Self)
    }

    /// The value of `webhook-signature`.
    pub fn sign(&self, id: &str, timestamp_seconds: i64, body: &str) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("{id}.{timestamp_seconds}.").as_bytes());
        mac.update(body.as_bytes());
        format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages whose signatures the SDKs of Standard Webhooks accept.
    #[test]
    fn signatures_are_those_that_the_standards_own_libraries_accept() {
        let signer = Signer::new("whsec_aYpXomphCKcx4XhkDipMrCNQpoNsosT3").unwrap();
        for (id, body, signature) in [
            (
                "msg_QMDA3rvsVp87HkP59bkQsAennZL",
                r#"{"type":"user.created","timestamp":"2026-01-01T00:12:57.000000Z","data":{"id":"usr_G2HIzJvHCKkW","name":"Example"}}"#,
                "v1,Bv1ohmnN+UTqXddF4pO2fSwaWVv4BFnWyHE12Yesp2g=",
            ),
            (
                "msg_Drd9zfP5GeMCKSSz0fkCQDAeAAx",
                r#"{"type":"job.completed","timestamp":"2026-01-01T00:12:57Z","data":{"id":"job_2Ic9Gsk25of9","output":{"url":"https://example.com/o"}}}"#,
                "v1,lcdwhfgHHo6ifBGPmM5TykYT00IRwj+PIi6puZd8Yxs=",
            ),
        ] {
            assert_eq!(signer.sign(id, 1_767_226_374, body), signature, "{id}");
        }
        // The example of the specification's reference implementation.
        let signer = Signer::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn other_secrets_are_refused() {
        for secret in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_not base64", "WHSEC_AAAA"] {
            assert!(Signer::new(secret).is_none(), "{secret}");
        }
    }
}
