//! PayPal: RSA over the id and the time of a transmission, the webhook's id and a checksum of the body, with a
//! certificate that the request names.
//!
//! The scheme is that of paypalrestsdk 1.13.3 (`WebhookEvent.verify`) and of PayPal's documentation ("Integrate
//! webhooks"), more strictly: only SHA-256, and only certificates from PayPal's own hosts. The secret is the webhook's
//! id. What is signed of the body is its CRC-32, which whoever has seen one signed request can keep while changing the
//! body at will; the page says what that means.

use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{
    Context, Provider, ProviderOption, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    certificate::{Certificate, require_chain},
    event::{required_event_type, unix_ms_from_rfc3339},
    keys::{KeySource, https_host_and_path},
    public_key::Scheme,
    signature::{decode_base64_bytes, require_fresh},
};

/// Header that carries the signature, base64.
pub const SIGNATURE_HEADER: &str = "paypal-transmission-sig";
/// Header that carries the signed id of the transmission.
pub const ID_HEADER: &str = "paypal-transmission-id";
/// Header that carries the signed time of the transmission, RFC 3339.
pub const TIME_HEADER: &str = "paypal-transmission-time";
/// Header that names the algorithm.
pub const ALGORITHM_HEADER: &str = "paypal-auth-algo";
/// Header that carries the address of the certificate.
pub const CERTIFICATE_URL_HEADER: &str = "paypal-cert-url";
/// The only algorithm that counts.
pub const ALGORITHM: &str = "SHA256withRSA";
/// The hosts that give out certificates.
pub const CERTIFICATE_HOSTS: [&str; 4] =
    ["api.paypal.com", "api-m.paypal.com", "api.sandbox.paypal.com", "api-m.sandbox.paypal.com"];
/// How the path of a certificate begins.
pub const CERTIFICATE_PATH_PREFIX: &str = "/v1/notifications/certs/CERT-";
/// How the name in a certificate ends.
pub const CERTIFICATE_NAME_SUFFIX: &str = ".paypal.com";
/// PayPal repeats a transmission for three days; the hour is for the last one to arrive.
pub const TOLERANCE_SECONDS: u64 = (3 * 24 + 1) * 3600;

/// The public roots that PayPal's certificates go back to: the one that its SDK has, and the one that PayPal announced
/// for October 2024 and later. Both are on Mozilla's list, from which they are taken.
const ROOTS: [&str; 2] = [
    include_str!("../../roots/digicert_high_assurance_ev_root_ca.pem"),
    include_str!("../../roots/digicert_global_root_g2.pem"),
];

const NAME: &str = "paypal";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const TRUSTED_ROOT_PEM: &str = "trusted_root_pem";

/// The provider `paypal`.
#[derive(Debug, Clone, Copy)]
pub struct PayPal;

impl Provider for PayPal {
    fn name(&self) -> &'static str {
        NAME
    }

    fn options(&self) -> &'static [ProviderOption] {
        &[ProviderOption {
            name: TRUSTED_ROOT_PEM,
            is_required: false,
            help: "the root certificates to trust, as PEM, instead of DigiCert's that PayPal uses",
        }]
    }

    fn default_tolerance_seconds(&self) -> u64 {
        TOLERANCE_SECONDS
    }

    fn key_source(&self, request: &Request<'_>, settings: &Settings) -> Result<Option<KeySource>, Rejection> {
        let transmission = Transmission::read(request, settings)?;
        Ok(Some(KeySource::document(transmission.certificate_url)))
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        let transmission = Transmission::read(request, settings)?;
        transmission.require_signed(request.body, settings, context)?;
        require_fresh(transmission.time_unix, context.now_unix, settings.tolerance_seconds)?;
        let event = read_event(request.body, transmission.is_live)?;
        Ok(Verified::new(vec![event]))
    }
}

/// The headers, read. No `Debug`, since they hold the signature.
struct Transmission<'r> {
    id: &'r str,
    time: &'r str,
    time_unix: i64,
    signature: Vec<u8>,
    certificate_url: &'r str,
    is_live: bool,
}

impl<'r> Transmission<'r> {
    /// What can be said about a request before its certificate is there.
    fn read(request: &Request<'r>, settings: &Settings) -> Result<Self, Rejection> {
        request.require_method(METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        settings.require_secrets()?;
        let header = |name| request.headers.signature(name);
        let malformed = Rejection::SignatureMalformed;
        let (id, time) = (header(ID_HEADER)?, header(TIME_HEADER)?);
        let signature = header(SIGNATURE_HEADER)?;
        let certificate_url = header(CERTIFICATE_URL_HEADER)?;
        if header(ALGORITHM_HEADER)? != ALGORITHM {
            return Err(malformed("the algorithm is not SHA-256 with RSA"));
        }
        // The fields of what is signed are parted by bars, so none may have one.
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'|') {
            return Err(malformed("the id of the transmission is not one"));
        }
        let parsed = OffsetDateTime::parse(time, &Rfc3339);
        let time_unix = parsed.map_err(|_| malformed("the time is not RFC 3339"))?.unix_timestamp();
        let signature = decode_base64_bytes(signature).ok_or(malformed("the signature is not base64"))?;
        let host = certificate_host(certificate_url)
            .ok_or(Rejection::KeyUntrusted("the certificate is not at an address of PayPal"))?;
        let is_live = !host.contains("sandbox");
        Ok(Self { id, time, time_unix, signature, certificate_url, is_live })
    }

    fn require_signed(
        &self,
        body: &[u8],
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<(), Rejection> {
        let pem = context.key.ok_or(Rejection::KeyUntrusted("PayPal has no such certificate"))?;
        let chain = Certificate::read_pem(pem)?;
        let certificate = require_chain(&chain, &roots(settings)?, context.now_unix, context.verifier)?;
        certificate.require_name(|name| name.ends_with(CERTIFICATE_NAME_SUFFIX))?;
        let key = certificate.rsa_key()?;
        let checksum = crc32fast::hash(body).to_string();
        let is_signed_for = |webhook_id: &str| {
            let message = [self.id, self.time, webhook_id, &checksum].join("|");
            key.has_signed(context.verifier, Scheme::RsaSha256, message.as_bytes(), &self.signature)
        };
        if settings.secrets.iter().any(|secret| is_signed_for(secret.expose())) {
            Ok(())
        } else {
            Err(Rejection::SignatureMismatch)
        }
    }
}

fn roots(settings: &Settings) -> Result<Vec<Certificate>, Rejection> {
    match settings.option(TRUSTED_ROOT_PEM) {
        Some(pem) => Certificate::read_pem(pem),
        None => Certificate::read_pem(&ROOTS.concat()),
    }
}

/// The host of the address of a certificate, if it is PayPal's.
fn certificate_host(url: &str) -> Option<&str> {
    let (host, path) = https_host_and_path(url)?;
    let name = path.strip_prefix(CERTIFICATE_PATH_PREFIX)?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (CERTIFICATE_HOSTS.contains(&host) && is_name).then_some(host)
}

fn read_event(body: &[u8], is_live: bool) -> Result<VerifiedEvent<'_>, Rejection> {
    let payload = json_text(body)?;
    let fields = Fields::read(payload, &["id", "event_type", "create_time", "event_version", "resource"])?;
    let resource = fields.object("resource", &["id"]);
    Ok(VerifiedEvent {
        id: Some(fields.id("id")?.ok_or(Rejection::Unreadable("no id"))?),
        event_type: required_event_type(NAME, &fields, "event_type")?,
        occurred_at_unix_ms: fields
            .lenient::<String>("create_time")
            .and_then(|text| unix_ms_from_rfc3339(&text)),
        livemode: Some(is_live),
        subject: resource.and_then(|resource| resource.short_text("id")),
        version: fields.short_text("event_version"),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Headers, Secrets, testing::corpus_case::CorpusCase};

    const CORPUS: &str = include_str!("../../tests/corpus/paypal.jsonl");
    const NAMES: [(&str, &str); 5] = [
        (ID_HEADER, "PAYPAL-TRANSMISSION-ID"),
        (TIME_HEADER, "PAYPAL-TRANSMISSION-TIME"),
        (SIGNATURE_HEADER, "PAYPAL-TRANSMISSION-SIG"),
        (CERTIFICATE_URL_HEADER, "PAYPAL-CERT-URL"),
        (ALGORITHM_HEADER, "PAYPAL-AUTH-ALGO"),
    ];

    fn valid() -> CorpusCase {
        CorpusCase::find(CORPUS, "paypal-001-valid-capture-completed")
    }

    fn settings(case: &CorpusCase) -> Settings {
        Settings::new(&PayPal, Secrets::from_list(["ZKM21GM8Q8I4RS3HH"]))
            .with_option(TRUSTED_ROOT_PEM, case.config(TRUSTED_ROOT_PEM))
    }

    /// The verdict about the valid case with one header replaced, at a time.
    fn verify_with(
        header: Option<(&str, &str)>,
        body: &[u8],
        settings: &Settings,
        now_unix: i64,
    ) -> Result<Verified<'static>, Rejection> {
        let case = valid();
        let value = |name: &str, in_case| match header {
            Some((changed, value)) if changed == name => value.to_owned(),
            _ => case.header(in_case).to_owned(),
        };
        let headers = Headers::from_iter(NAMES.map(|(name, in_case)| (name, value(name, in_case))));
        let body: &'static [u8] = Box::leak(body.to_vec().into());
        let headers = Box::leak(Box::new(headers));
        let request = Request { method: METHOD, url: "", headers, body };
        let key = case.download(case.header("PAYPAL-CERT-URL"));
        PayPal.key_source(&request, settings)?;
        PayPal.verify(&request, settings, &Context::at(now_unix).with_key(Some(&key)))
    }

    fn reason<T>(verdict: Result<T, Rejection>) -> Option<&'static str> {
        verdict.err().map(|rejection| rejection.reason())
    }

    #[test]
    fn fields_become_an_event() {
        let case = valid();
        let verified = verify_with(None, &case.body, &settings(&case), case.now_unix).unwrap();
        let [event] = <[_; 1]>::try_from(verified.events).unwrap();
        assert_eq!(event.id.as_deref(), Some("WH-UXGBXOD8KHJE62WFY-WRDEZ3V7Z9GQ5AURB"));
        assert_eq!((event.event_type.as_str(), event.fact.len()), ("paypal.payment.capture.completed", 0));
        assert_eq!((event.livemode, event.version.as_deref()), (Some(true), Some("1.0")));
        assert_eq!(event.subject.as_deref(), Some("V60FFEKUWXWJMTBLF"));
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_246_598_000));
        assert_eq!(event.payload.as_bytes(), case.body);
    }

    #[test]
    fn every_flipped_bit_of_the_body_is_refused() {
        let case = valid();
        let settings = settings(&case);
        for bit in (0..case.body.len() * 8).step_by(5) {
            let mut flipped = case.body.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let refused = verify_with(None, &flipped, &settings, case.now_unix);
            assert_eq!(reason(refused), Some("signature_mismatch"), "{bit}");
        }
    }

    #[test]
    fn headers_are_signed_or_pinned() {
        let case = valid();
        for (header, value, expected) in [
            (ID_HEADER, "97818cba-83ae-4b5c-a841-792471149515", "signature_mismatch"),
            (ID_HEADER, "a|b", "signature_malformed"),
            (ID_HEADER, "", "signature_malformed"),
            (TIME_HEADER, "2026-01-01T05:50:01Z", "signature_mismatch"),
            (TIME_HEADER, "2026-01-01T05:50:00+00:00", "signature_mismatch"),
            (TIME_HEADER, "1767246600", "signature_malformed"),
            (SIGNATURE_HEADER, "AAAA", "signature_mismatch"),
            (SIGNATURE_HEADER, "not base64", "signature_malformed"),
            (ALGORITHM_HEADER, "SHA1withRSA", "signature_malformed"),
            (ALGORITHM_HEADER, "sha256withrsa", "signature_malformed"),
            (CERTIFICATE_URL_HEADER, "https://evil.example/cert.pem", "key_untrusted"),
        ] {
            let refused = verify_with(Some((header, value)), &case.body, &settings(&case), case.now_unix);
            assert_eq!(reason(refused), Some(expected), "{header}: {value}");
        }
    }

    #[test]
    fn only_addresses_of_paypal_name_a_certificate() {
        let good = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-1d93a270";
        assert_eq!(certificate_host(good), Some("api.paypal.com"));
        assert!(certificate_host(&good.replace("api.", "api.sandbox.")).is_some());
        for bad in [
            good.replace("https:", "http:"),
            good.replace("api.paypal.com", "paypal.com"),
            good.replace("api.paypal.com", "evil.paypal.com"),
            good.replace("api.paypal.com", "api.paypal.com.evil.example"),
            good.replace("api.paypal.com", "api.paypal.com:443"),
            good.replace("api.paypal.com", "x@api.paypal.com"),
            good.replace("/v1/", "/v2/"),
            good.replace("CERT-", "CERT-/../"),
            good.replace("CERT-360caa42-fca2a594-1d93a270", "CERT-"),
            [good, "?x"].concat(),
            [good, "/x"].concat(),
        ] {
            assert_eq!(certificate_host(&bad), None, "{bad}");
        }
    }

    #[test]
    fn times_may_lie_three_days_and_an_hour_apart() {
        let case = valid();
        let signed = 1_767_246_600;
        for (age, expected) in
            [(262_800, None), (262_801, Some("signature_stale")), (-262_801, Some("signature_stale"))]
        {
            let verdict = verify_with(None, &case.body, &settings(&case), signed + age);
            assert_eq!(reason(verdict), expected, "{age}");
        }
    }

    #[test]
    fn the_roots_in_the_program_are_the_ones_that_are_meant() {
        use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
        // As Mozilla's list of root certificates publishes them.
        let fingerprints = [
            "7431e5f4c3c1ce4690774f0b61e05440883ba9a01ed00ba6abd7806ed3b118cf",
            "cb3ccbb76031e5e0138f8dd39a23f9de47ffc35e43c1144cea27d46a5ab1cb5f",
        ];
        for (pem, fingerprint) in ROOTS.iter().zip(fingerprints) {
            let base64: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
            assert_eq!(crate::signature::sha256_hex(BASE64.decode(base64).unwrap()), fingerprint);
        }
        let case = valid();
        let by_default = Settings::new(&PayPal, Secrets::from_list(["ZKM21GM8Q8I4RS3HH"]));
        assert_eq!(roots(&by_default).map(|roots| roots.len()), Ok(2));
        let refused = verify_with(None, &case.body, &by_default, case.now_unix);
        assert_eq!(reason(refused), Some("key_untrusted"), "the root of the corpus is none of them");
    }

    #[test]
    fn any_webhook_id_may_be_the_signed_one() {
        let case = valid();
        let root = case.config(TRUSTED_ROOT_PEM);
        for (ids, expected) in [
            (vec!["OTHER", "ZKM21GM8Q8I4RS3HH"], None),
            (vec!["OTHER"], Some("signature_mismatch")),
            (vec![], Some("no_secret")),
        ] {
            let settings =
                Settings::new(&PayPal, Secrets::from_list(&ids)).with_option(TRUSTED_ROOT_PEM, root);
            assert_eq!(reason(verify_with(None, &case.body, &settings, case.now_unix)), expected, "{ids:?}");
        }
    }

    #[test]
    fn a_body_that_is_no_event_is_unreadable() {
        for body in
            ["", "{}", r#"{"id":"WH-1"}"#, r#"{"event_type":"A.B"}"#, r#"{"id":7,"event_type":"A.B"}"#]
        {
            assert_eq!(
                read_event(body.as_bytes(), true).err().map(|rejection| rejection.status()),
                Some(400),
                "{body}"
            );
        }
    }
}
