//! Amazon SNS over HTTPS: notifications, and the two handshakes of a subscription. The signature is in the body, and the
//! certificate that it is verified with is at an address in the body.
//!
//! The scheme is that of sns-validator 0.3.5 and, for the fields of a confirmation, of aws-php-sns-message-validator and
//! Amazon's guide: some fields of the message, by name and value, signed by RSA with PKCS#1 v1.5. The certificate proves
//! no more than that SNS sent it, on behalf of anybody; which topic counts is an option. Raw message delivery is not
//! signed and therefore refused.

use std::borrow::Cow;

use crate::{
    Answer, Context, Provider, ProviderOption, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    certificate::Certificate,
    event::{is_short_text, required_event_type, unix_ms_from_rfc3339},
    keys::{KeySource, https_host_and_path},
    public_key::Scheme,
    signature::decode_base64_bytes,
};

/// How the name of a certificate begins in its address.
pub const CERTIFICATE_PATH_PREFIX: &str = "/SimpleNotificationService-";
/// How it ends.
pub const CERTIFICATE_PATH_SUFFIX: &str = ".pem";
/// What is signed of a notification, in this order; a subject only if there is one.
pub const NOTIFICATION_FIELDS: [&str; 6] =
    ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"];
/// What is signed of a confirmation that a subscription begins or has ended.
pub const CONFIRMATION_FIELDS: [&str; 7] =
    ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"];

const NAME: &str = "aws_sns";
const METHOD: &str = "POST";
/// SNS says `text/plain`, unless a delivery policy says what it is.
const MEDIA_TYPES: [&str; 2] = ["text/plain", "application/json"];
const TOPIC_ARN: &str = "topic_arn";
const NOTIFICATION: &str = "Notification";
const SUBSCRIPTION_CONFIRMATION: &str = "SubscriptionConfirmation";
const UNSUBSCRIBE_CONFIRMATION: &str = "UnsubscribeConfirmation";

const FIELDS: &[&str] = &[
    "Type",
    "MessageId",
    "TopicArn",
    "Subject",
    "Message",
    "Timestamp",
    "Token",
    "SubscribeURL",
    "UnsubscribeURL",
    "SignatureVersion",
    "SigningCertURL",
    "Signature",
];

/// The provider `aws_sns`.
#[derive(Debug, Clone, Copy)]
pub struct AwsSns;

impl Provider for AwsSns {
    fn name(&self) -> &'static str {
        NAME
    }

    fn options(&self) -> &'static [ProviderOption] {
        &[ProviderOption {
            name: TOPIC_ARN,
            is_required: true,
            help: "the ARNs of the topics that may send here, with blanks or commas between them",
        }]
    }

    fn key_source(&self, request: &Request<'_>, settings: &Settings) -> Result<Option<KeySource>, Rejection> {
        settings.option(TOPIC_ARN).ok_or(Rejection::NoSecret)?;
        let message = Message::read(request)?;
        Ok(Some(KeySource::document(message.certificate_url)))
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        let message = Message::read(request)?;
        let topics = settings.option(TOPIC_ARN).ok_or(Rejection::NoSecret)?;
        message.require_signed(context)?;
        let topic = message.text("TopicArn")?;
        let mut topics = topics.split(|c: char| c == ',' || c.is_whitespace());
        if !topics.any(|expected| !expected.is_empty() && expected == topic) {
            return Err(Rejection::SignatureForeign("the topic is another one"));
        }
        if message.kind == SUBSCRIPTION_CONFIRMATION {
            let mut verified = Verified::handshake(Answer::empty(200));
            verified.confirm_url = Some(message.subscribe_url(&topic)?);
            return Ok(verified);
        }
        Ok(Verified::new(vec![message.event(&topic)?]))
    }
}

/// A message whose signature has a known form and names a certificate of SNS.
struct Message<'a> {
    payload: &'a str,
    fields: Fields<'a>,
    kind: &'static str,
    hash: Scheme,
    signature: Vec<u8>,
    certificate_url: String,
}

impl<'a> Message<'a> {
    /// What can be said about a request before its certificate is there. The signature is in the body, so a body that
    /// cannot be read is one without a signature.
    fn read(request: &Request<'a>) -> Result<Self, Rejection> {
        request.require_method(METHOD)?;
        let [plain, json] = MEDIA_TYPES;
        request.require_media_type(plain).or_else(|_| request.require_media_type(json))?;
        let malformed = Rejection::SignatureMalformed;
        let payload = json_text(request.body).map_err(|_| malformed("the body is not a message of SNS"))?;
        let fields =
            Fields::read(payload, FIELDS).map_err(|_| malformed("the body is not a message of SNS"))?;
        let text = |name| fields.lenient::<Cow<'a, str>>(name);
        let kind = match text("Type").as_deref() {
            Some(NOTIFICATION) => NOTIFICATION,
            Some(SUBSCRIPTION_CONFIRMATION) => SUBSCRIPTION_CONFIRMATION,
            Some(UNSUBSCRIBE_CONFIRMATION) => UNSUBSCRIBE_CONFIRMATION,
            _ => return Err(malformed("the body is not a message of SNS")),
        };
        let signature = text("Signature").ok_or(Rejection::SignatureMissing)?;
        let signature = decode_base64_bytes(&signature).filter(|signature| !signature.is_empty());
        let signature = signature.ok_or(malformed("the signature is not base64"))?;
        let hash = match text("SignatureVersion").as_deref() {
            Some("1") => Scheme::RsaSha1,
            Some("2") => Scheme::RsaSha256,
            _ => return Err(malformed("the version of the signature is unknown")),
        };
        let certificate_url = text("SigningCertURL").unwrap_or_default().into_owned();
        if !is_certificate_url(&certificate_url) {
            return Err(Rejection::KeyUntrusted("the certificate is not at an address of SNS"));
        }
        Ok(Self { payload, fields, kind, hash, signature, certificate_url })
    }

    fn require_signed(&self, context: &Context<'_>) -> Result<(), Rejection> {
        let pem = context.key.ok_or(Rejection::KeyUntrusted("SNS has no such certificate"))?;
        let certificates = Certificate::read_pem(pem)?;
        let certificate = certificates.first().ok_or(Rejection::KeyUntrusted("there is no certificate"))?;
        certificate.require_valid_at(context.now_unix)?;
        certificate.require_name(is_signer_name)?;
        let key = certificate.rsa_key()?;
        if key.has_signed(context.verifier, self.hash, self.signed_text()?.as_bytes(), &self.signature) {
            Ok(())
        } else {
            Err(Rejection::SignatureMismatch)
        }
    }

    /// The text that is signed. The values are those that the fields have as text, so it does not matter how the body
    /// spells them.
    fn signed_text(&self) -> Result<String, Rejection> {
        let names: &[&str] =
            if self.kind == NOTIFICATION { &NOTIFICATION_FIELDS } else { &CONFIRMATION_FIELDS };
        let mut signed = String::new();
        for name in names {
            if *name == "Subject" && self.fields.raw(name).is_none() {
                continue;
            }
            signed.push_str(name);
            signed.push('\n');
            signed.push_str(&self.text(name)?);
            signed.push('\n');
        }
        Ok(signed)
    }

    fn text(&self, name: &str) -> Result<String, Rejection> {
        let missing = Rejection::SignatureMalformed("a signed field is missing or not text");
        self.fields.lenient(name).ok_or(missing)
    }

    /// Where the subscription is confirmed. It is signed, but so would be what others have SNS send, so it is looked at
    /// all the same.
    fn subscribe_url(&self, topic: &str) -> Result<String, Rejection> {
        let url = self.text("SubscribeURL")?;
        let odd = Rejection::Unreadable("the address for the confirmation is not one of SNS");
        let query = query_of_sns(&url).ok_or(odd)?;
        let has = |name: &str, expected: &str| {
            let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name);
            values.next().is_some_and(|(_, value)| value == expected) && values.next().is_none()
        };
        let is_confirmation = has("Action", "ConfirmSubscription") && has("TopicArn", topic);
        if is_confirmation { Ok(url) } else { Err(odd) }
    }

    fn event(&self, topic: &str) -> Result<VerifiedEvent<'a>, Rejection> {
        let unsubscribe: Option<String> = self.fields.value("UnsubscribeURL")?;
        // Not signed; whoever handles the event must not be led to somewhere else by it.
        if unsubscribe.is_some_and(|url| query_of_sns(&url).is_none()) {
            return Err(Rejection::Unreadable("the address for unsubscribing is not one of SNS"));
        }
        let account = topic.split(':').nth(4).filter(|account| is_short_text(account));
        Ok(VerifiedEvent {
            id: Some(self.fields.id("MessageId")?.ok_or(Rejection::Unreadable("no id"))?),
            event_type: required_event_type(NAME, &self.fields, "Type")?,
            occurred_at_unix_ms: unix_ms_from_rfc3339(&self.text("Timestamp")?),
            account: account.map(str::to_owned),
            payload: self.payload.into(),
            ..VerifiedEvent::default()
        })
    }
}

/// `sns.<region>.amazonaws.com`, or `….cn`.
fn is_sns_host(host: &str) -> bool {
    let region = host.strip_prefix("sns.").and_then(|rest| {
        let rest = rest.strip_suffix(".cn").unwrap_or(rest);
        rest.strip_suffix(".amazonaws.com")
    });
    region.is_some_and(|region| region.len() >= 3 && !region.contains('.'))
}

fn is_certificate_url(url: &str) -> bool {
    let Some((host, path)) = https_host_and_path(url) else { return false };
    let name = path
        .strip_prefix(CERTIFICATE_PATH_PREFIX)
        .and_then(|rest| rest.strip_suffix(CERTIFICATE_PATH_SUFFIX));
    is_sns_host(host) && name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Certificates are made out to `sns.amazonaws.com`, and in some regions to a name of the region's that begins in the
/// same way.
fn is_signer_name(name: &str) -> bool {
    let rest = name.strip_suffix(".cn").unwrap_or(name).strip_suffix(".amazonaws.com");
    rest.is_some_and(|rest| rest == "sns" || rest.starts_with("sns.") || rest.starts_with("sns-"))
}

/// The query of an address `https://sns.<region>.amazonaws.com/?…`.
fn query_of_sns(url: &str) -> Option<&str> {
    let (base, query) = url.split_once('?')?;
    let (host, path) = https_host_and_path(base)?;
    let is_plain = query.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#' && byte != b'\\');
    (is_sns_host(host) && path == "/" && is_plain).then_some(query)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{Headers, Secrets, testing::corpus_case::CorpusCase};

    const CORPUS: &str = include_str!("../../tests/corpus/aws_sns.jsonl");
    const TOPIC: &str = "arn:aws:sns:us-east-1:123456789012:orders";

    /// The verdict about a body, with the certificate of a case and these topics.
    fn verify(case: &CorpusCase, body: &[u8], topics: &str) -> Result<Verified<'static>, Rejection> {
        let body: &'static [u8] = Box::leak(body.to_vec().into());
        let headers = Headers::from_iter([("content-type", "text/plain; charset=UTF-8")]);
        let headers = Box::leak(Box::new(headers));
        let request = Request { method: METHOD, url: "", headers, body };
        let settings = Settings::new(&AwsSns, Secrets::default()).with_option(TOPIC_ARN, topics);
        let source = AwsSns.key_source(&request, &settings)?.unwrap();
        let key = case.download(&source.url);
        let context = Context::at(case.now_unix).with_key(Some(&key));
        AwsSns.verify(&request, &settings, &context)
    }

    fn changed(case: &CorpusCase, field: &str, value: &str) -> Vec<u8> {
        let mut body: Value = serde_json::from_slice(&case.body).unwrap();
        body[field] = value.into();
        body.to_string().into_bytes()
    }

    fn reason<T>(verdict: Result<T, Rejection>) -> Option<&'static str> {
        verdict.err().map(|rejection| rejection.reason())
    }

    #[test]
    fn a_notification_becomes_an_event() {
        let case = CorpusCase::find(CORPUS, "aws_sns-001-notification-v1");
        let verified = verify(&case, &case.body, TOPIC).unwrap();
        assert_eq!((verified.answer, verified.confirm_url), (None, None));
        let [event] = <[_; 1]>::try_from(verified.events).unwrap();
        assert_eq!(event.id.as_deref(), Some("2e23c6d5-1970-49d7-a387-07cede27dd8e"));
        assert_eq!((event.event_type.as_str(), event.fact.len()), ("aws_sns.notification", 0));
        assert_eq!(event.account.as_deref(), Some("123456789012"));
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_245_600_123));
        assert_eq!(event.payload.as_bytes(), case.body);
    }

    #[test]
    fn every_signed_field_is_signed() {
        for (id, fields) in [
            ("aws_sns-001-notification-v1", NOTIFICATION_FIELDS.as_slice()),
            ("aws_sns-002-notification-v2", NOTIFICATION_FIELDS.as_slice()),
            ("aws_sns-011-subscription-confirmation", CONFIRMATION_FIELDS.as_slice()),
        ] {
            let case = CorpusCase::find(CORPUS, id);
            assert!(verify(&case, &case.body, TOPIC).is_ok());
            for field in fields.iter().filter(|field| **field != "Type") {
                let refused = verify(&case, &changed(&case, field, "x"), TOPIC);
                assert_eq!(reason(refused), Some("signature_mismatch"), "{id}: {field}");
            }
            for kind in [NOTIFICATION, SUBSCRIPTION_CONFIRMATION, UNSUBSCRIBE_CONFIRMATION, "x", ""] {
                let verdict = verify(&case, &changed(&case, "Type", kind), TOPIC);
                assert!(
                    verdict.is_err() || case.body.windows(kind.len()).any(|part| part == kind.as_bytes())
                );
            }
        }
    }

    #[test]
    fn a_field_may_not_come_twice() {
        let case = CorpusCase::find(CORPUS, "aws_sns-001-notification-v1");
        let text = String::from_utf8(case.body.clone()).unwrap();
        for field in FIELDS {
            let twice = text.replacen('{', &format!(r#"{{"{field}":"x","{field}":"x","#), 1);
            assert_eq!(
                reason(verify(&case, twice.as_bytes(), TOPIC)),
                Some("signature_malformed"),
                "{field}"
            );
        }
    }

    #[test]
    fn only_the_pinned_topics_get_through() {
        let case = CorpusCase::find(CORPUS, "aws_sns-001-notification-v1");
        for (topics, expected) in [
            (TOPIC, None),
            ("arn:aws:sns:us-east-1:1:a, arn:aws:sns:us-east-1:123456789012:orders\n", None),
            ("arn:aws:sns:us-east-1:123456789012:order", Some("signature_foreign")),
            (",", Some("signature_foreign")),
            (" ", Some("no_secret")),
        ] {
            assert_eq!(reason(verify(&case, &case.body, topics)), expected, "{topics}");
        }
    }

    #[test]
    fn a_confirmation_names_where_to_confirm_and_only_for_the_pinned_topic() {
        let case = CorpusCase::find(CORPUS, "aws_sns-011-subscription-confirmation");
        let verified = verify(&case, &case.body, TOPIC).unwrap();
        let body: Value = serde_json::from_slice(&case.body).unwrap();
        assert_eq!(verified.confirm_url.as_deref(), body["SubscribeURL"].as_str());
        assert_eq!((verified.events, verified.answer), (vec![], Some(Answer::empty(200))));
        let foreign = verify(&case, &case.body, "arn:aws:sns:us-east-1:1:a");
        assert_eq!(reason(foreign), Some("signature_foreign"));
    }

    #[test]
    fn the_address_of_a_confirmation_is_looked_at() {
        let check = |url: &str| {
            let text = serde_json::json!({ "SubscribeURL": url }).to_string();
            let fields = Fields::read(Box::leak(text.into_boxed_str()), FIELDS).unwrap();
            let message = Message {
                payload: "",
                fields,
                kind: SUBSCRIPTION_CONFIRMATION,
                hash: Scheme::RsaSha1,
                signature: vec![],
                certificate_url: String::new(),
            };
            message.subscribe_url("arn:t").is_ok()
        };
        let good = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=arn:t&Token=1";
        assert!(
            check(good)
                && check(&good.replace(".com", ".com.cn"))
                && check(&good.replace(':', "%3A").replace("https%3A", "https:"))
        );
        for bad in [
            good.replace("https", "http"),
            good.replace("sns.", "evil-sns."),
            good.replace(".com/", ".com.evil.example/"),
            good.replace(".com/", ".com:444/"),
            good.replace("//", "//x@"),
            good.replace("/?", "/x?"),
            good.replace("arn:t", "arn:u"),
            good.replace("ConfirmSubscription", "Unsubscribe"),
            [good, "&TopicArn=arn:u"].concat(),
            [good, "#x"].concat(),
            [good, " "].concat(),
            String::new(),
        ] {
            assert!(!check(&bad), "{bad}");
        }
    }

    #[test]
    fn only_addresses_of_sns_name_a_certificate() {
        let good = "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-5e30343bf00d12ad4175408db97a5ecd.pem";
        assert!(is_certificate_url(good) && is_certificate_url(&good.replace(".com/", ".com.cn/")));
        for bad in [
            good.replace("https:", "http:"),
            good.replace(".com/", ".com.evil.example/"),
            good.replace(".com/", ".com:443/"),
            good.replace(".com/", ".com./"),
            good.replace("sns.", "evil.sns."),
            good.replace("sns.us-east-1", "sns"),
            good.replace("us-east-1", "a.b"),
            good.replace("amazonaws", "amazonaw"),
            good.replace("/Simple", "/x/Simple"),
            good.replace("-5e", "-/../5e"),
            good.replace(".pem", ".pem?x"),
            good.replace(".pem", ".crt"),
            good.replace("Service-", "Service"),
        ] {
            assert!(!is_certificate_url(&bad), "{bad}");
        }
    }

    #[test]
    fn names_of_signers() {
        for name in
            ["sns.amazonaws.com", "sns.cn-north-1.amazonaws.com.cn", "sns-signing.af-south-1.amazonaws.com"]
        {
            assert!(is_signer_name(name), "{name}");
        }
        for name in
            ["", "amazonaws.com", "snsx.amazonaws.com", "s3.amazonaws.com", "sns.amazonaws.com.evil.example"]
        {
            assert!(!is_signer_name(name), "{name}");
        }
    }

    #[test]
    fn a_certificate_that_has_ended_or_is_for_others_is_not_trusted() {
        let case = CorpusCase::find(CORPUS, "aws_sns-001-notification-v1");
        let headers = Headers::default();
        let request = Request { method: METHOD, url: "", headers: &headers, body: &case.body };
        let settings = Settings::new(&AwsSns, Secrets::default()).with_option(TOPIC_ARN, TOPIC);
        let url = AwsSns.key_source(&request, &settings).unwrap().unwrap().url;
        let own = case.download(&url);
        let google = CorpusCase::find(
            include_str!("../../tests/corpus/google_pubsub.jsonl"),
            "google_pubsub-001-valid",
        );
        let google = google.download(super::super::google_pubsub::CERTIFICATES_URL).replace("\\n", "\n");
        for (key, now_unix, expected) in [
            (Some(own.as_str()), case.now_unix, None),
            (Some(&own), 2_600_000_000, Some("key_untrusted")),
            (Some(&own), 1_700_000_000, Some("key_untrusted")),
            (Some(&own), -1, Some("key_untrusted")),
            (Some(&google), case.now_unix, Some("key_untrusted")),
            (Some("<html>"), case.now_unix, Some("key_untrusted")),
            (None, case.now_unix, Some("key_untrusted")),
        ] {
            let verdict = AwsSns.verify(&request, &settings, &Context::at(now_unix).with_key(key));
            assert_eq!(reason(verdict), expected, "{now_unix}");
        }
    }
}
