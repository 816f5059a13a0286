//! GitHub: one HMAC-SHA256 over the body, which is JSON, or a form with the JSON in a field.
//!
//! The scheme is that of @octokit/webhooks-methods 6.0.0 (`verify`) and of docs.github.com/webhooks (validating webhook
//! deliveries). `X-Hub-Signature`, which is SHA-1, comes beside it and is not looked at. Id and type are in headers that
//! are not signed, so the payload is part of the identity.

use std::borrow::Cow;

use crate::{
    Answer, Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{forge_subject, header_event_type},
    form::Form,
    signature::{decode_hub_signature, hub_signature, require_hmac_header, sha256_hex},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-hub-signature-256";
/// Header of the event's id, which all webhooks that the event is sent to and all deliveries share. It is not signed.
pub const DELIVERY_HEADER: &str = "x-github-delivery";
/// Header of the event's type. It is not signed.
pub const EVENT_HEADER: &str = "x-github-event";
/// Field of a form that holds the JSON.
pub const FORM_FIELD: &str = "payload";

const NAME: &str = "github";
const METHOD: &str = "POST";
const MEDIA_TYPES: &[&str] = &["application/json", "application/x-www-form-urlencoded"];
const EVENT_FIELDS: &[&str] =
    &["zen", "organization", "repository", "installation", "pull_request", "issue", "discussion"];
/// What has a number within its repository.
const NUMBERED: &[&str] = &["pull_request", "issue", "discussion"];

/// The provider `github`.
#[derive(Debug, Clone, Copy)]
pub struct GitHub;

impl Provider for GitHub {
    fn name(&self) -> &'static str {
        NAME
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        _context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method(METHOD)?;
        request.require_media_type_among(MEDIA_TYPES)?;
        let signed = [request.body];
        require_hmac_header(request, &settings.secrets, SIGNATURE_HEADER, decode_hub_signature, &signed)?;
        read_delivery(request)
    }
}

/// Signs as GitHub does, without the legacy header. A request that names no event is a push. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let (id, signature) = (request.body_id(), hub_signature(secret, &request.body));
    let request = request.with_usual_header(EVENT_HEADER, "push").with_usual_header(DELIVERY_HEADER, id);
    request.with_header(SIGNATURE_HEADER, signature)
}

/// Reads a delivery. It is a ping if the signed body says so; the header of the type could be changed.
fn read_delivery<'a>(request: &Request<'a>) -> Result<Verified<'a>, Rejection> {
    let payload = payload(request.body)?;
    let fields = Fields::read(&payload, EVENT_FIELDS)?;
    if fields.raw("zen").is_some() {
        return Ok(Verified::handshake(Answer::empty(200)));
    }
    let repository = fields.object("repository", &["full_name", "owner"]).unwrap_or_default();
    let number = NUMBERED.iter().find_map(|name| number(fields.object(name, &["number"]), "number"));
    let event = VerifiedEvent {
        id: Some(request.headers.required_id(DELIVERY_HEADER)?.to_owned()),
        is_id_unsigned: true,
        fact: vec![sha256_hex(payload.as_bytes())],
        event_type: header_event_type(NAME, request.headers, EVENT_HEADER)?,
        account: account(&fields, &repository),
        subject: forge_subject(repository.lenient("full_name"), "#", number),
        ..VerifiedEvent::default()
    };
    Ok(Verified::new(vec![VerifiedEvent { payload, ..event }]))
}

/// The JSON. Whether it is in a form is told by the body, since the content type is not signed; no JSON begins like one.
fn payload(body: &[u8]) -> Result<Cow<'_, str>, Rejection> {
    let is_form = body.strip_prefix(FORM_FIELD.as_bytes()).is_some_and(|rest| rest.starts_with(b"="));
    if !is_form {
        return json_text(body).map(Cow::Borrowed);
    }
    let form = Form::read(body)?;
    let payload = form.single(FORM_FIELD)?.unwrap_or_default();
    json_text(payload.as_bytes()).map(|text| Cow::Owned(text.to_owned()))
}

/// The id of the organization or user that owns what it is about; a login can be given up and taken by another one.
fn account(fields: &Fields<'_>, repository: &Fields<'_>) -> Option<String> {
    let installed = || fields.object("installation", &["account"])?.object("account", &["id"]);
    let id = number(fields.object("organization", &["id"]), "id")
        .or_else(|| number(repository.object("owner", &["id"]), "id"))
        .or_else(|| number(installed(), "id"))?;
    Some(id.to_string())
}

fn number(object: Option<Fields<'_>>, name: &str) -> Option<u64> {
    object?.lenient(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        Arriving, NOW, URL, assert_conventions, assert_header_signs_body, event, events, outcome,
    };

    const FORM: &str = MEDIA_TYPES[1];
    const BODY: &str = r#"{"action":"opened","pull_request":{"number":7},"organization":{"id":12},
        "repository":{"full_name":"example-org/widgets","owner":{"id":34}}}"#;

    /// A body that is signed right, with these headers in place of the usual ones.
    fn signed(media_type: &str, body: &str, headers: &[(&'static str, &str)]) -> Arriving {
        let request = Outgoing::post(URL, media_type, body);
        let request =
            headers.iter().fold(request, |request, (name, value)| request.with_header(name, *value));
        Arriving::signed_at(&GitHub, request, NOW)
    }

    #[test]
    fn what_fields_become() {
        let headers = [(EVENT_HEADER, "pull_request"), (DELIVERY_HEADER, "72d3162e-cc78")];
        let [event] =
            <[_; 1]>::try_from(signed(MEDIA_TYPES[0], BODY, &headers).verified(&GitHub).events).unwrap();
        assert_eq!(event.id.as_deref(), Some("72d3162e-cc78"));
        assert_eq!(event.event_type, "github.pull_request");
        assert_eq!(event.account.as_deref(), Some("12"));
        assert_eq!(event.subject.as_deref(), Some("example-org/widgets#7"));
        assert_eq!(event.payload, BODY);
        assert!(matches!(event.payload, Cow::Borrowed(_)));
    }

    #[test]
    fn accounts_and_subjects_are_where_they_are() {
        for (body, account, subject) in [
            (r#"{"repository":{"full_name":"a/b","owner":{"id":34}}}"#, Some("34"), Some("a/b")),
            (r#"{"repository":{"full_name":"a/b"},"issue":{"number":1}}"#, None, Some("a/b#1")),
            (r#"{"repository":{"full_name":"a/b"},"discussion":{"number":2}}"#, None, Some("a/b#2")),
            (r#"{"installation":{"id":5,"account":{"id":56}}}"#, Some("56"), None),
            (r#"{"installation":{"id":5},"organization":{"id":"12"}}"#, None, None),
            (r#"{"repository":[],"issue":{"number":-1}}"#, None, None),
        ] {
            let event = event(&GitHub, body);
            assert_eq!((event.account.as_deref(), event.subject.as_deref()), (account, subject), "{body}");
        }
    }

    #[test]
    fn a_form_is_the_same_event_whatever_its_content_type_says() {
        let form: String =
            form_urlencoded::Serializer::new(String::new()).append_pair(FORM_FIELD, BODY).finish();
        let headers = [(DELIVERY_HEADER, "1")];
        let plain = signed(MEDIA_TYPES[0], BODY, &headers).verified(&GitHub).events;
        for media_type in MEDIA_TYPES {
            assert_eq!(signed(media_type, &form, &headers).verified(&GitHub).events, plain, "{media_type}");
        }
        for body in ["payload=", "payload=%7B", "payload=%7B%7D&payload=%7B%7D", "payload=%FF", "x=1"] {
            assert_eq!(signed(FORM, body, &headers).outcome(&GitHub), "unreadable_body", "{body}");
        }
    }

    #[test]
    fn a_redelivery_is_the_same_fact_and_another_payload_is_not() {
        let identity = |body: &str, id: &str| {
            let event =
                signed(MEDIA_TYPES[0], body, &[(DELIVERY_HEADER, id)]).verified(&GitHub).events.remove(0);
            (event.id, event.fact)
        };
        assert_eq!(identity(BODY, "1"), identity(BODY, "1"));
        assert_eq!(identity(BODY, "1").1, identity(BODY, "2").1, "the fact is what is signed");
        assert_ne!(identity(BODY, "1"), identity(BODY, "2"));
        assert_ne!(identity(BODY, "1"), identity(&BODY.replace("opened", "closed"), "1"));
    }

    #[test]
    fn a_ping_makes_no_event() {
        let ping = r#"{"zen":"Design for failure.","hook_id":1}"#;
        assert!(events(&GitHub, ping).is_empty());
        let headers = [(EVENT_HEADER, "ping")];
        assert_eq!(
            signed(MEDIA_TYPES[0], BODY, &headers).verified(&GitHub).events.len(),
            1,
            "a changed header"
        );
    }

    #[test]
    fn headers_are_required_and_legacy_ones_prove_nothing() {
        for (name, value) in [(EVENT_HEADER, ""), (DELIVERY_HEADER, ""), (DELIVERY_HEADER, "a b")] {
            assert_eq!(signed(MEDIA_TYPES[0], BODY, &[(name, value)]).outcome(&GitHub), "unreadable_body");
            let mut without = Arriving::signed(&GitHub, BODY);
            without.headers.retain(|(header, _)| *header != name);
            assert_eq!(without.outcome(&GitHub), "unreadable_body", "{name}");
            without.headers.extend([(name, "a".to_owned()), (name, "b".to_owned())]);
            assert_eq!(without.outcome(&GitHub), "unreadable_body", "{name} twice");
        }
        let mut legacy = Arriving::signed(&GitHub, BODY);
        let signature = legacy.headers.pop().unwrap().1;
        legacy.headers.push(("x-hub-signature", signature));
        assert_eq!(legacy.outcome(&GitHub), "signature_missing");
        for body in ["", "[]", "null", "\"a\""] {
            assert_eq!(outcome(&GitHub, body), "unreadable_body", "{body}");
        }
    }

    #[test]
    fn the_body_is_signed() {
        assert_header_signs_body(&GitHub, SIGNATURE_HEADER, BODY);
        assert_conventions(&GitHub, BODY);
    }
}
