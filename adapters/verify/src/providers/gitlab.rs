//! GitLab: a signing token by the rules of Standard Webhooks, or a secret token that is sent along.
//!
//! The signing token is that of the merge requests 230944 and 231325 of gitlab-org/gitlab; the secret token and the headers are
//! those of docs.gitlab.com (webhooks). Which of the two a configured secret is shows in how it begins. A secret token proves
//! who sends, and nothing about the body; a signing token proves both, and when.

use crate::{
    Context, Outgoing, Provider, Rejection, Request, Secrets, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{forge_subject, header_event_type},
    signature::{require_equal, sha256_hex},
    standard::{SECRET_PREFIX, StandardHeaders, require_standard, sign_standard},
};

/// Header that carries the secret token.
pub const TOKEN_HEADER: &str = "x-gitlab-token";
/// Header of the delivery's id, which a retry repeats. It is not signed; `webhook-id`, which is, has the same value.
pub const DELIVERY_HEADER: &str = "idempotency-key";
/// Header of the event's type: `Push Hook`. It is not signed.
pub const EVENT_HEADER: &str = "x-gitlab-event";
/// Header of the event that set off this one and others, for instances that send no id of a delivery yet.
pub const EVENT_UUID_HEADER: &str = "x-gitlab-event-uuid";

const NAME: &str = "gitlab";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const HEADERS: StandardHeaders = StandardHeaders::WEBHOOK;
const EVENT_FIELDS: &[&str] =
    &["object_kind", "project", "path_with_namespace", "object_attributes", "merge_request", "issue"];
const MERGE_REQUEST_SIGN: &str = "!";
const ISSUE_SIGN: &str = "#";

/// The provider `gitlab`.
#[derive(Debug, Clone, Copy)]
pub struct GitLab;

impl Provider for GitLab {
    fn name(&self) -> &'static str {
        NAME
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method(METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        settings.require_secrets()?;
        let signed_id = verify_sender(request, settings, context)?;
        Ok(Verified::new(vec![read_event(request, signed_id)?]))
    }
}

/// Verifies the signature, or without one the token, and returns the signed id.
///
/// A signing token never counts as a secret token: it would let a request through that is neither fresh nor covers its
/// body. So an endpoint that has signing tokens only takes signed requests only.
fn verify_sender<'a>(
    request: &Request<'a>,
    settings: &Settings,
    context: &Context<'_>,
) -> Result<Option<&'a str>, Rejection> {
    let mut signing = settings.clone();
    signing.secrets = only(&settings.secrets, is_signing_token);
    let tokens = only(&settings.secrets, |secret| !is_signing_token(secret));
    let is_signed = request.headers.all(HEADERS.signature).next().is_some();
    if tokens.is_empty() || (is_signed && !signing.secrets.is_empty()) {
        return require_standard(request, &HEADERS, &signing, context).map(Some);
    }
    require_equal(&tokens, request.headers.signature(TOKEN_HEADER)?).map(|()| None)
}

fn is_signing_token(secret: &str) -> bool {
    secret.contains(SECRET_PREFIX)
}

fn only(secrets: &Secrets, is_wanted: fn(&str) -> bool) -> Secrets {
    Secrets::from_list(secrets.iter().map(|secret| secret.expose()).filter(|secret| is_wanted(secret)))
}

/// Signs as GitLab does with a signing token, or adds a secret token. A request that names no event is a push.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, now_unix: i64) -> Outgoing {
    let id = request.body_id();
    let request =
        request.with_usual_header(EVENT_HEADER, "Push Hook").with_usual_header(DELIVERY_HEADER, id.as_str());
    if is_signing_token(secret) {
        return sign_standard(request.with_usual_header(HEADERS.id, id), &HEADERS, secret, now_unix);
    }
    request.with_header(TOKEN_HEADER, secret)
}

fn read_event<'a>(request: &Request<'a>, signed_id: Option<&str>) -> Result<VerifiedEvent<'a>, Rejection> {
    let payload = json_text(request.body)?;
    let fields = Fields::read(payload, EVENT_FIELDS)?;
    let id = match signed_id {
        Some(id) => Some(id),
        None => request.headers.id(DELIVERY_HEADER)?,
    };
    let fact = if id.is_some() { Vec::new() } else { fact_without_id(request)? };
    Ok(VerifiedEvent {
        id: id.map(str::to_owned),
        fact,
        event_type: header_event_type(NAME, request.headers, EVENT_HEADER)?,
        subject: subject(&fields),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

/// Before GitLab 17.4 a delivery has no id. The one in the other header is shared by all that an event sets off, directly
/// or by way of other webhooks, so the body goes with it.
fn fact_without_id(request: &Request<'_>) -> Result<Vec<String>, Rejection> {
    let event = request.headers.id(EVENT_UUID_HEADER)?.unwrap_or_default();
    Ok(vec![event.to_owned(), sha256_hex(request.body)])
}

/// `group/project`, with the number of the merge request or issue that it is about: `group/project!7`.
fn subject(fields: &Fields<'_>) -> Option<String> {
    let number = |name| fields.object(name, &["iid"]).and_then(|object| object.lenient::<u64>("iid"));
    let itself = |sign| number("object_attributes").map(|number| (sign, number));
    let numbered = match fields.lenient::<String>("object_kind").as_deref() {
        Some("merge_request") => itself(MERGE_REQUEST_SIGN),
        Some("issue" | "work_item") => itself(ISSUE_SIGN),
        _ => number("merge_request")
            .map(|number| (MERGE_REQUEST_SIGN, number))
            .or_else(|| number("issue").map(|number| (ISSUE_SIGN, number))),
    };
    let path = |fields: &Fields<'_>| fields.lenient::<String>("path_with_namespace");
    let project = fields.object("project", &["path_with_namespace"]);
    let path = project.and_then(|project| path(&project)).or_else(|| path(fields));
    forge_subject(path, numbered.map_or("", |(sign, _)| sign), numbered.map(|(_, number)| number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, NOW, SECRET as TOKEN, URL, assert_conventions, event, outcome};

    const SIGNING_TOKEN: &str = "whsec_Xsn0NmIYJDZI9J28gGfIuXudTXslRTQBIVrGv5LHFXE=";
    const BODY: &str = r#"{"object_kind":"merge_request","project":{"path_with_namespace":"example/diaspora"},
        "object_attributes":{"iid":7,"state":"opened"}}"#;

    fn endpoint(secrets: &[&str]) -> Settings {
        Settings::new(&GitLab, Secrets::from_list(secrets))
    }

    /// A request with this id, signed or with a token.
    fn with_secret(secret: &str, id: &str, now: i64) -> Arriving {
        let request = Outgoing::post(URL, MEDIA_TYPE, BODY);
        let request = request.with_header(DELIVERY_HEADER, id).with_header(HEADERS.id, id);
        let Outgoing { method, url, headers, body } = sign(request, secret, now);
        Arriving { method, url, headers, body }
    }

    #[test]
    fn what_fields_become() {
        let event = with_secret(TOKEN, "1d13c6d3", NOW).verified(&GitLab).events.remove(0);
        assert_eq!(event.id.as_deref(), Some("1d13c6d3"));
        assert_eq!(event.event_type, "gitlab.push_hook");
        assert_eq!((event.subject.as_deref(), event.account), (Some("example/diaspora!7"), None));
        assert_eq!(event.payload, BODY);
    }

    #[test]
    fn subjects_are_written_as_gitlab_does() {
        let project = r#""project":{"path_with_namespace":"a/b"}"#;
        for (fields, subject) in [
            (r#""object_kind":"push""#, Some("a/b")),
            (r#""object_kind":"issue","object_attributes":{"iid":1}"#, Some("a/b#1")),
            (r#""object_kind":"work_item","object_attributes":{"iid":1}"#, Some("a/b#1")),
            (r#""object_kind":"note","object_attributes":{"id":9},"merge_request":{"iid":2}"#, Some("a/b!2")),
            (r#""object_kind":"note","object_attributes":{"iid":9},"issue":{"iid":3}"#, Some("a/b#3")),
            (r#""object_kind":7,"issue":{"iid":"3"}"#, Some("a/b")),
        ] {
            let event = event(&GitLab, &format!("{{{fields},{project}}}"));
            assert_eq!(event.subject.as_deref(), subject, "{fields}");
        }
        let system = event(&GitLab, r#"{"event_name":"project_create","path_with_namespace":"a/b"}"#);
        assert_eq!(system.subject.as_deref(), Some("a/b"));
        for body in ["", "[]", "null", r#"{"issue":1,"issue":2}"#] {
            assert_eq!(outcome(&GitLab, body), "unreadable_body", "{body}");
        }
    }

    #[test]
    fn the_configured_secrets_say_what_is_asked_for() {
        let (signed, sent) = (with_secret(SIGNING_TOKEN, "a", NOW), with_secret(TOKEN, "a", NOW));
        let mut both = signed.clone();
        both.headers.push((TOKEN_HEADER, TOKEN.to_owned()));
        let mut leaked = sent.clone();
        leaked.headers.retain(|(name, _)| *name != TOKEN_HEADER);
        leaked.headers.push((TOKEN_HEADER, SIGNING_TOKEN.to_owned()));
        let mut forged = both.clone();
        forged.body.push(b' ');

        let table: [(&[&str], _, _); 13] = [
            (&[SIGNING_TOKEN], &signed, "accept"),
            (&[SIGNING_TOKEN], &both, "accept"),
            (&[SIGNING_TOKEN], &sent, "signature_missing"),
            (&[SIGNING_TOKEN], &leaked, "signature_missing"),
            (&[TOKEN], &sent, "accept"),
            (&[TOKEN], &both, "accept"),
            (&[TOKEN], &signed, "signature_missing"),
            (&[TOKEN], &leaked, "signature_mismatch"),
            (&[TOKEN, SIGNING_TOKEN], &signed, "accept"),
            (&[TOKEN, SIGNING_TOKEN], &sent, "accept"),
            (&[TOKEN, SIGNING_TOKEN], &leaked, "signature_mismatch"),
            (&[TOKEN, SIGNING_TOKEN], &forged, "signature_mismatch"),
            (&[TOKEN], &forged, "accept"),
        ];
        for (index, (secrets, request, expected)) in table.into_iter().enumerate() {
            assert_eq!(request.outcome_with(&GitLab, &endpoint(secrets)), expected, "row {index}");
        }
        assert_eq!(signed.outcome_with(&GitLab, &endpoint(&["whsec_!"])), "no_secret");
    }

    #[test]
    fn every_bit_that_is_signed_counts() {
        let signed = with_secret(SIGNING_TOKEN, "1d67ebb2", NOW);
        let settings = endpoint(&[SIGNING_TOKEN]);
        for bit in 0..BODY.len() * 8 {
            let mut changed = signed.clone();
            changed.body[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(changed.outcome_with(&GitLab, &settings), "signature_mismatch", "bit {bit}");
        }
        for (name, value) in [(HEADERS.id, "1d67ebb3"), (HEADERS.timestamp, "1767237946")] {
            let mut changed = signed.clone();
            changed.headers.retain(|(header, _)| *header != name);
            changed.headers.push((name, value.to_owned()));
            assert_eq!(changed.outcome_with(&GitLab, &settings), "signature_mismatch", "{name}");
        }
        for (now, expected) in
            [(NOW - 300, "accept"), (NOW - 301, "signature_stale"), (NOW + 301, "signature_stale")]
        {
            let outcome = with_secret(SIGNING_TOKEN, "a", now).outcome_with(&GitLab, &settings);
            assert_eq!(outcome, expected, "{now}");
        }
    }

    #[test]
    fn tokens_are_equal_or_not() {
        for value in
            ["", "a", &TOKEN[1..], &TOKEN.to_uppercase(), &format!("{TOKEN} "), &format!("{TOKEN}, {TOKEN}")]
        {
            let mut request = with_secret(TOKEN, "a", NOW);
            request.headers.pop();
            request.headers.push((TOKEN_HEADER, value.to_owned()));
            assert_eq!(request.outcome(&GitLab), "signature_mismatch", "{value:?}");
        }
        let mut twice = with_secret(TOKEN, "a", NOW);
        twice.headers.push((TOKEN_HEADER, TOKEN.to_owned()));
        assert_eq!(twice.outcome(&GitLab), "signature_malformed");
        assert_conventions(&GitLab, BODY);
    }

    #[test]
    fn a_retry_is_the_same_fact_and_another_delivery_is_not() {
        let identity = |headers: &[(&'static str, &str)], body: &str| {
            let mut request = Arriving::signed(&GitLab, body);
            request.headers.retain(|(name, _)| *name != DELIVERY_HEADER);
            request.headers.extend(headers.iter().map(|(name, value)| (*name, (*value).to_owned())));
            let event = request.verified(&GitLab).events.remove(0);
            (event.id, event.fact)
        };
        let closed = BODY.replace("opened", "closed");
        for name in [DELIVERY_HEADER, EVENT_UUID_HEADER] {
            assert_eq!(identity(&[(name, "a")], BODY), identity(&[(name, "a")], BODY));
            assert_ne!(identity(&[(name, "a")], BODY), identity(&[(name, "b")], BODY));
        }
        assert_eq!(identity(&[(DELIVERY_HEADER, "a")], BODY), (Some("a".to_owned()), vec![]));
        let recursive = [(EVENT_UUID_HEADER, "a")];
        assert_ne!(identity(&recursive, BODY), identity(&recursive, &closed));

        // The signed id counts, whatever the header that is not signed says.
        let mut signed = with_secret(SIGNING_TOKEN, "a", NOW);
        signed.headers.retain(|(name, _)| *name != DELIVERY_HEADER);
        signed.headers.push((DELIVERY_HEADER, "b".to_owned()));
        assert_eq!(read(&signed, &[SIGNING_TOKEN]).id.as_deref(), Some("a"));
    }

    fn read(request: &Arriving, secrets: &[&str]) -> VerifiedEvent<'static> {
        let headers: crate::Headers =
            request.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let (headers, body) = (Box::leak(Box::new(headers)), request.body.clone().leak());
        let request = Request { method: METHOD, url: URL, headers, body };
        GitLab.verify(&request, &endpoint(secrets), &Context::at(NOW)).unwrap().events.remove(0)
    }

    #[test]
    fn headers_are_read_strictly() {
        for (name, value) in [(EVENT_HEADER, ""), (DELIVERY_HEADER, ""), (DELIVERY_HEADER, "a b")] {
            let mut request = Arriving::signed(&GitLab, BODY);
            request.headers.retain(|(header, _)| *header != name);
            request.headers.push((name, value.to_owned()));
            assert_eq!(request.outcome(&GitLab), "unreadable_body", "{name}: {value:?}");
        }
    }
}
