//! Signature headers that hold a time and signatures as items `key=value`: Stripe's and those made after it.

use crate::{
    Outgoing, Rejection, Request, Settings,
    signature::{decode_hex_lower, hmac_sha256, parse_unix_seconds, require_fresh, require_match},
};

/// How a provider writes such a header. What is signed is HMAC-SHA256 over the time's text, `joint` and the body, keyed
/// with the secret's text; signatures are lower-case hex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedHeader {
    /// The header's name, lower-case.
    pub name: &'static str,
    /// What separates the items.
    pub separator: char,
    /// Key of the signed time, seconds since 1970.
    pub timestamp_key: &'static str,
    /// Key of a signature, of which there is one for each secret that is active at the provider.
    pub signature_key: &'static str,
    /// What stands between time and body where they are signed.
    pub joint: &'static str,
}

impl TimedHeader {
    /// Refuses a request that is not signed, freshly, in this way. Freshness is asked last, so that "stale" in a log means
    /// a true signature: a replay, or a clock that is off. The sender is told the same either way.
    ///
    /// # Errors
    /// [`Rejection::NoSecret`] and all of those about signatures.
    pub fn require(
        &self,
        request: &Request<'_>,
        settings: &Settings,
        now_unix: i64,
    ) -> Result<(), Rejection> {
        settings.require_secrets()?;
        let header = request.headers.signature(self.name)?;
        let signed = Signed::parse(self, header).map_err(Rejection::SignatureMalformed)?;
        let parts = self.signed_parts(signed.timestamp, request.body);
        require_match(&settings.secrets, &signed.signatures, |secret| {
            hmac_sha256(secret.expose().as_bytes(), &parts)
        })?;
        require_fresh(signed.timestamp_unix, now_unix, settings.tolerance_seconds)
    }

    /// The value of the header for a body, with one signature.
    #[must_use]
    pub fn value(&self, secret: &str, timestamp_unix: i64, body: &[u8]) -> String {
        let timestamp = timestamp_unix.to_string();
        let digest = hex::encode(hmac_sha256(secret.as_bytes(), &self.signed_parts(&timestamp, body)));
        let separator = self.separator;
        format!("{}={timestamp}{separator}{}={digest}", self.timestamp_key, self.signature_key)
    }

    /// Signs a request in this way.
    #[must_use]
    pub fn sign(&self, request: Outgoing, secret: &str, now_unix: i64) -> Outgoing {
        let value = self.value(secret, now_unix, &request.body);
        request.with_header(self.name, value)
    }

    fn signed_parts<'a>(&self, timestamp: &'a str, body: &'a [u8]) -> [&'a [u8]; 3] {
        [timestamp.as_bytes(), self.joint.as_bytes(), body]
    }
}

/// The header, read. No `Debug`, since it holds signatures.
struct Signed<'a> {
    timestamp: &'a str,
    timestamp_unix: i64,
    /// Those that have the form of a digest; another one can never match.
    signatures: Vec<[u8; 32]>,
}

impl<'a> Signed<'a> {
    /// Reads the header, or says what is wrong with it. Unknown keys are passed over.
    ///
    /// A blank anywhere is refused. The providers send none, and it is how two headers look that were joined into one.
    fn parse(form: &TimedHeader, header: &'a str) -> Result<Self, &'static str> {
        if !header.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a character that is not visible ASCII");
        }
        let mut timestamp = None;
        let mut signature_count = 0_usize;
        let mut signatures = Vec::new();
        for (key, value) in header.split(form.separator).filter_map(|item| item.split_once('=')) {
            if key == form.timestamp_key && timestamp.replace(value).is_some() {
                return Err("more than one time");
            }
            if key == form.signature_key {
                signature_count += 1;
                signatures.extend(decode_hex_lower::<32>(value));
            }
        }
        let timestamp = timestamp.ok_or("no time")?;
        let timestamp_unix = parse_unix_seconds(timestamp).ok_or("the time is not a number of seconds")?;
        if signature_count == 0 {
            return Err("no signature of the known version");
        }
        Ok(Self { timestamp, timestamp_unix, signatures })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Headers, Secrets, providers::stripe::Stripe};

    const FORM: TimedHeader = TimedHeader {
        name: "x-signature",
        separator: ';',
        timestamp_key: "ts",
        signature_key: "h1",
        joint: ":",
    };
    const SECRET: &str = "secret-one";
    const NOW: i64 = 1_767_237_945;
    const BODY: &[u8] = b"{}";

    /// Verdict about [`BODY`] under a header, of which `{}` becomes the digest for [`NOW`].
    fn verify(header: &str) -> Result<(), &'static str> {
        let good = FORM.value(SECRET, NOW, BODY);
        let (_, digest) = good.split_once("h1=").unwrap();
        let headers = Headers::from_iter([(FORM.name, header.replace("{}", digest))]);
        let request = Request { method: "POST", url: "", headers: &headers, body: BODY };
        // Tolerance and secrets are all that is asked of the settings, so any provider's will do.
        let settings = Settings::new(&Stripe, Secrets::from_list(["secret-two", SECRET]));
        FORM.require(&request, &settings, NOW).map_err(|rejection| rejection.reason())
    }

    #[test]
    fn the_value_has_the_form() {
        // Same digest by `printf '1767237945:{}' | openssl dgst -sha256 -hmac secret-one`.
        let value = "ts=1767237945;h1=71f8a669c3c151a6aee9efc59055328c0616ae62b065263ad9be3f48c426647c";
        assert_eq!(FORM.value(SECRET, NOW, BODY), value);
        assert_eq!(verify(value), Ok(()));
    }

    #[test]
    fn the_form_is_read_strictly() {
        let zeros = "0".repeat(64);
        for header in [
            "ts=1767237945;h1={}".to_owned(),
            "h1={};ts=1767237945;".to_owned(),
            format!("ts=1767237945;h1={zeros};h1={{}}"),
            format!("ts=1767237945;h1={{}};h1={zeros};h1=junk;h2=x;y"),
        ] {
            assert_eq!(verify(&header), Ok(()), "{header}");
        }
        for header in [
            "",
            "{}",
            "h1={}",
            "ts=1767237945",
            "ts=;h1={}",
            "ts=abc;h1={}",
            "ts=01767237945;h1={}",
            "ts=1767237945,h1={}",
            "ts=1767237945;H1={}",
            "t=1767237945;v1={}",
            "ts=1767237945; h1={}",
            "ts=1767237945;h1={}\n",
            "ts=1767237945;ts=1767237945;h1={}",
            "ts=1767237945;h1={}, ts=1767237945;h1={}",
        ] {
            assert_eq!(verify(header), Err("signature_malformed"), "{header}");
        }
        for header in
            [format!("ts=1767237945;h1={zeros}"), "ts=1767237945;h1={}0".to_owned(), "ts=1;h1={}".to_owned()]
        {
            assert_eq!(verify(&header), Err("signature_mismatch"), "{header}");
        }
    }
}
