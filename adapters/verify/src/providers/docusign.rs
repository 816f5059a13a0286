//! DocuSign Connect: one HMAC for each active key, any of which may be ours.
//!
//! There is no SDK that verifies. The scheme is that of DocuSign's guide to HMAC in Connect: base64 of HMAC-SHA256 over the
//! body in `X-DocuSign-Signature-1` and so on. Bodies are JSON, or XML in the older format.

use crate::{
    Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{event_type_or_unknown, required_event_type},
    signature::{decode_base64, encode_base64, hmac_sha256, require_match},
};

/// Header that carries the signature by the first key; those by others count on.
pub const SIGNATURE_HEADER: &str = "x-docusign-signature-1";

const NAME: &str = "docusign";
const METHOD: &str = "POST";
const MEDIA_TYPES: [&str; 3] = ["application/json", "text/xml", "application/xml"];
/// As many keys as an account can have.
const SIGNATURES_MAX: usize = 100;
const BODY_FIELDS: &[&str] = &["event", "generatedDateTime", "configurationId", "data"];
const DATA_FIELDS: &[&str] = &["accountId", "envelopeId", "recipientId"];

/// The provider `docusign`.
#[derive(Debug, Clone, Copy)]
pub struct DocuSign;

impl Provider for DocuSign {
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
        request.require_media_type_among(&MEDIA_TYPES)?;
        settings.require_secrets()?;
        let offered = signatures(request)?;
        require_match(&settings.secrets, &offered, |secret| {
            hmac_sha256(secret.expose().as_bytes(), &[request.body])
        })?;
        let text = json_text(request.body)?;
        // The media type is not signed, so the body says what it is.
        let event = if text.starts_with('<') { read_xml(text) } else { read_event(text)? };
        Ok(Verified::new(vec![event]))
    }
}

fn signatures(request: &Request<'_>) -> Result<Vec<[u8; 32]>, Rejection> {
    let decode =
        |text: &str| decode_base64(text).ok_or(Rejection::SignatureMalformed("not the base64 of 32 bytes"));
    let mut offered = vec![decode(request.headers.signature(SIGNATURE_HEADER)?)?];
    for number in 2..=SIGNATURES_MAX {
        match request.headers.signature(&["x-docusign-signature-", &number.to_string()].concat()) {
            Ok(text) => offered.push(decode(text)?),
            Err(Rejection::SignatureMissing) => break,
            Err(rejection) => return Err(rejection),
        }
    }
    Ok(offered)
}

/// A retry counts up in `retryCount`, so the body is not the identity; what happened to which envelope, and when, is.
fn read_event(payload: &str) -> Result<VerifiedEvent<'_>, Rejection> {
    let fields = Fields::read(payload, BODY_FIELDS)?;
    let data = fields.object("data", DATA_FIELDS).unwrap_or_default();
    let envelope = data.short_text("envelopeId");
    let of = |fields: &Fields<'_>, name| fields.raw(name).unwrap_or_default().to_owned();
    let mut fact = Vec::new();
    if envelope.is_some() && fields.raw("generatedDateTime").is_some() {
        fact.extend(["event", "generatedDateTime", "configurationId"].map(|name| of(&fields, name)));
        fact.extend(["accountId", "envelopeId", "recipientId"].map(|name| of(&data, name)));
    }
    Ok(VerifiedEvent {
        fact,
        event_type: required_event_type(NAME, &fields, "event")?,
        occurred_at_unix_ms: fields.time_in_rfc3339("generatedDateTime"),
        account: data.short_text("accountId"),
        subject: envelope,
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

/// The older format. Payloads are JSON, so the document becomes a text in it.
fn read_xml<'a>(document: &str) -> VerifiedEvent<'a> {
    VerifiedEvent {
        event_type: event_type_or_unknown(NAME, Some("xml")),
        payload: serde_json::Value::from(document).to_string().into(),
        ..VerifiedEvent::default()
    }
}

/// Signs as DocuSign does with one key. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let digest = hmac_sha256(secret.as_bytes(), &[&request.body]);
    request.with_header(SIGNATURE_HEADER, encode_base64(&digest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, SECRET, assert_conventions, event, flipped, outcome};

    const BODY: &str = r#"{"event":"envelope-completed","retryCount":0,"configurationId":1,
        "generatedDateTime":"2026-01-01T00:00:00.0000000Z","data":{"accountId":"a1","envelopeId":"e1","n":1.0}}"#;

    #[test]
    fn an_event_is_read_in_full() {
        let event = event(&DocuSign, BODY);
        assert_eq!((event.id.as_deref(), event.event_type.as_str()), (None, "docusign.envelope-completed"));
        assert_eq!((event.account.as_deref(), event.subject.as_deref()), (Some("a1"), Some("e1")));
        assert_eq!((event.occurred_at_unix_ms, &*event.payload), (Some(1_767_225_600_000), BODY));
    }

    #[test]
    fn a_retry_is_the_same_fact_and_a_later_state_is_another() {
        let fact = |body: &str| event(&DocuSign, body).fact;
        let first = fact(BODY);
        assert_eq!(fact(&BODY.replace("\"retryCount\":0", "\"retryCount\":3")), first);
        for (from, to) in
            [("completed", "sent"), ("00.0000000Z", "01.0000000Z"), ("e1", "e2"), ("\"a1\"", "\"a2\"")]
        {
            assert_ne!(fact(&BODY.replace(from, to)), first, "{from}");
        }
        assert_eq!(fact(r#"{"event":"envelope-sent"}"#), Vec::<String>::new(), "the payload is the identity");
    }

    #[test]
    fn xml_becomes_a_text_in_json() {
        let event = event(&DocuSign, "<a b=\"1\"/>\n");
        assert_eq!((event.event_type.as_str(), &*event.payload), ("docusign.xml", r#""<a b=\"1\"/>""#));
    }

    #[test]
    fn any_of_the_signatures_may_match() {
        let other = encode_base64(&hmac_sha256(b"another key", &[BODY.as_bytes()]));
        let ours = encode_base64(&hmac_sha256(SECRET.as_bytes(), &[BODY.as_bytes()]));
        let with = |signatures: &[&str]| {
            let mut request = Arriving::signed(&DocuSign, BODY);
            request.headers.retain(|(name, _)| *name != SIGNATURE_HEADER);
            let names = [SIGNATURE_HEADER, "x-docusign-signature-2", "x-docusign-signature-3"];
            request.headers.extend(names.into_iter().zip(signatures.iter().map(|&text| text.to_owned())));
            request.outcome(&DocuSign)
        };
        assert_eq!(with(&[&other, &ours]), "accept");
        assert_eq!(with(&[&other, &other, &ours]), "accept");
        assert_eq!(with(&[&other, &other]), "signature_mismatch");
        assert_eq!(with(&[&ours, "x"]), "signature_malformed");
        assert_eq!(with(&[]), "signature_missing");
    }

    #[test]
    fn every_flipped_bit_of_the_body_is_refused() {
        let good = Arriving::signed(&DocuSign, BODY);
        for (bit, body) in flipped(&good.body).enumerate() {
            let changed = Arriving { body, ..good.clone() };
            assert_eq!(changed.outcome(&DocuSign), "signature_mismatch", "bit {bit}");
        }
        assert_conventions(&DocuSign, BODY);
    }

    #[test]
    fn signed_bodies_that_are_no_events_are_unreadable() {
        for body in ["", "[]", "{}", r#"{"event":""}"#, r#"{"event":7}"#, r#"{"event":"a","event":"b"}"#] {
            assert_eq!(outcome(&DocuSign, body), "unreadable_body", "{body}");
        }
    }
}
