//! Bitbucket Cloud: one HMAC-SHA256 over the body.
//!
//! The scheme is that of support.atlassian.com/bitbucket-cloud (manage webhooks, secure webhooks), with the vector there;
//! there is no SDK that verifies. Id and type are in headers that are not signed, so the body is part of the identity.

use std::borrow::Cow;

use serde_json::Value;

use crate::{
    Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{forge_subject, header_event_type},
    signature::{decode_hub_signature, hub_signature, require_hmac_header, sha256_hex},
};

/// Header that carries the signature. Elsewhere its name stands for SHA-1; here the value begins with `sha256=`.
pub const SIGNATURE_HEADER: &str = "x-hub-signature";
/// Header of the request's id. It is not signed.
pub const REQUEST_HEADER: &str = "x-request-uuid";
/// Header of the event's type. It is not signed.
pub const EVENT_HEADER: &str = "x-event-key";

const NAME: &str = "bitbucket";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const EVENT_FIELDS: &[&str] = &["repository", "pullrequest", "issue"];
/// What has a number within its repository.
const NUMBERED: &[&str] = &["pullrequest", "issue"];

/// The provider `bitbucket`.
#[derive(Debug, Clone, Copy)]
pub struct Bitbucket;

impl Provider for Bitbucket {
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
        request.require_media_type(MEDIA_TYPE)?;
        let signed = [request.body];
        require_hmac_header(request, &settings.secrets, SIGNATURE_HEADER, decode_hub_signature, &signed)?;
        Ok(Verified::new(vec![read_event(request)?]))
    }
}

/// Signs as Bitbucket does. A request that names no event is a push. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let (id, signature) = (request.body_id(), hub_signature(secret, &request.body));
    let request = request.with_usual_header(EVENT_HEADER, "repo:push").with_usual_header(REQUEST_HEADER, id);
    request.with_header(SIGNATURE_HEADER, signature)
}

fn read_event<'a>(request: &Request<'a>) -> Result<VerifiedEvent<'a>, Rejection> {
    let text = json_text(request.body)?;
    let fields = Fields::read(text, EVENT_FIELDS);
    let payload = if fields.is_ok() { Cow::Borrowed(text) } else { quoted(text)?.into() };
    let fields = fields.unwrap_or_default();
    let repository = fields.object("repository", &["full_name", "workspace"]).unwrap_or_default();
    let number = NUMBERED.iter().find_map(|name| fields.object(name, &["id"])?.lenient("id"));
    Ok(VerifiedEvent {
        id: Some(request.headers.required_id(REQUEST_HEADER)?.to_owned()),
        is_id_unsigned: true,
        fact: vec![sha256_hex(request.body)],
        event_type: header_event_type(NAME, request.headers, EVENT_HEADER)?,
        account: repository.object("workspace", &["uuid"]).and_then(|workspace| workspace.short_text("uuid")),
        subject: forge_subject(repository.lenient("full_name"), "#", number),
        payload,
        ..VerifiedEvent::default()
    })
}

/// A text that is no event of a known form as a JSON string, whole. The headers say what it is, and Bitbucket's own vector
/// is such a text; one that tries to be JSON and is broken is nothing that was sent.
fn quoted(text: &str) -> Result<String, Rejection> {
    if text.is_empty() || text.starts_with(['{', '[', '"', '\u{feff}']) {
        return Err(Rejection::Unreadable("not a JSON object"));
    }
    Ok(Value::from(text).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, NOW, URL, assert_conventions, assert_header_signs_body, event, outcome};

    const BODY: &str = r#"{"pullrequest":{"id":7,"state":"OPEN"},
        "repository":{"full_name":"example/repo","workspace":{"uuid":"{3e9f2de0}"}}}"#;

    fn signed(body: &str, event: &str, id: &str) -> Arriving {
        let request = Outgoing::post(URL, MEDIA_TYPE, body);
        let request = request.with_header(EVENT_HEADER, event).with_header(REQUEST_HEADER, id);
        Arriving::signed_at(&Bitbucket, request, NOW)
    }

    #[test]
    fn what_fields_become() {
        let event =
            signed(BODY, "pullrequest:created", "840fe331-7727").verified(&Bitbucket).events.remove(0);
        assert_eq!(event.id.as_deref(), Some("840fe331-7727"));
        assert_eq!(event.event_type, "bitbucket.pullrequest_created");
        assert_eq!(event.account.as_deref(), Some("{3e9f2de0}"));
        assert_eq!(event.subject.as_deref(), Some("example/repo#7"));
        assert_eq!(event.payload, BODY);
    }

    #[test]
    fn a_retry_is_the_same_fact_and_another_body_is_not() {
        let identity = |body: &str, attempt: &str| {
            let mut request = signed(body, "repo:push", "a1b2");
            request.headers.push(("x-attempt-number", attempt.to_owned()));
            let event = request.verified(&Bitbucket).events.remove(0);
            (event.id, event.fact)
        };
        assert_eq!(identity(BODY, "1"), identity(BODY, "2"));
        assert_ne!(identity(BODY, "1"), identity(&BODY.replace("OPEN", "DONE"), "1"));
    }

    #[test]
    fn text_is_quoted_and_broken_json_is_refused() {
        let odd = event(&Bitbucket, "Hello \"World\"!");
        assert_eq!((&*odd.payload, odd.account, odd.subject), (r#""Hello \"World\"!""#, None, None));
        for body in ["", " ", "{", "[]", "\"a\"", r#"{"a":1}}"#, r#"{"issue":1,"issue":2}"#, "\u{feff}{}"] {
            assert_eq!(outcome(&Bitbucket, body), "unreadable_body", "{body}");
        }
        let odd = event(&Bitbucket, r#"{"repository":{"full_name":"a b","workspace":7},"issue":{"id":"7"}}"#);
        assert_eq!((odd.account, odd.subject), (None, None));
    }

    #[test]
    fn headers_are_required() {
        for (event, id) in [("", "a"), ("a", ""), ("a", "a b")] {
            assert_eq!(signed(BODY, event, id).outcome(&Bitbucket), "unreadable_body", "{event:?} {id:?}");
        }
        for name in [EVENT_HEADER, REQUEST_HEADER] {
            let mut without = signed(BODY, "a", "a");
            without.headers.retain(|(header, _)| *header != name);
            assert_eq!(without.outcome(&Bitbucket), "unreadable_body", "{name}");
        }
    }

    #[test]
    fn the_body_is_signed() {
        assert_header_signs_body(&Bitbucket, SIGNATURE_HEADER, BODY);
        assert_conventions(&Bitbucket, BODY);
    }
}
