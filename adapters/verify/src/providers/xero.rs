//! Xero: one HMAC over the body, several events in it, and none in an "intent to receive".
//!
//! The scheme and the fields are those of developer.xero.com/documentation/webhooks; there is no SDK that verifies.

use crate::{
    Answer, Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{event_type_or_unknown, unix_ms_from_rfc3339},
    signature::{decode_base64, encode_base64, hmac_sha256, require_hmac_header},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-xero-signature";

const NAME: &str = "xero";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const ITEM_FIELDS: &[&str] = &["resourceId", "eventDateUtc", "eventType", "eventCategory", "tenantId"];

/// The provider `xero`.
#[derive(Debug, Clone, Copy)]
pub struct Xero;

impl Provider for Xero {
    fn name(&self) -> &'static str {
        NAME
    }

    /// An intent to receive is a request without events. Xero sends some with a wrong signature, and wants 401 for
    /// these and 200 for the right ones.
    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        _context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method(METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        let signed = [request.body];
        require_hmac_header(request, &settings.secrets, SIGNATURE_HEADER, decode_base64, &signed)?;
        let items = Fields::read(json_text(request.body)?, &["events"])?.items("events")?;
        Ok(Verified::new(items.into_iter().map(read_item).collect()).with_answer(Answer::empty(200)))
    }
}

/// Signs as Xero does. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let digest = hmac_sha256(secret.as_bytes(), &[&request.body]);
    request.with_header(SIGNATURE_HEADER, encode_base64(&digest))
}

/// Reads one event. An item of another form is an event of unknown type, so that it does not hide the others.
fn read_item(item: &str) -> VerifiedEvent<'_> {
    let fields = Fields::read(item, ITEM_FIELDS).unwrap_or_default();
    let words = [fields.lenient::<String>("eventCategory"), fields.lenient("eventType")];
    let xero_type =
        if let [Some(category), Some(kind)] = words { Some([category, kind].join(".")) } else { None };
    VerifiedEvent {
        event_type: event_type_or_unknown(NAME, xero_type.as_deref()),
        occurred_at_unix_ms: fields.lenient::<String>("eventDateUtc").as_deref().and_then(unix_ms_from_utc),
        account: fields.short_text("tenantId"),
        subject: fields.short_text("resourceId"),
        payload: item.into(),
        ..VerifiedEvent::default()
    }
}

/// Xero's times are RFC 3339 but for the zone, which is always UTC and not written.
fn unix_ms_from_utc(text: &str) -> Option<i64> {
    unix_ms_from_rfc3339(text).or_else(|| unix_ms_from_rfc3339(&[text, "Z"].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, assert_conventions, assert_header_signs_body, events, outcome};

    const ITEM: &str = r#"{"resourceUrl":"https://api.xero.com/x","resourceId":"1e71d60b",
        "eventDateUtc":"2026-01-01T00:00:00.5","eventType":"UPDATE","eventCategory":"INVOICE",
        "tenantId":"66d91787","tenantType":"ORGANISATION"}"#;

    fn body(items: &[&str]) -> String {
        let items = items.join(", ");
        format!(r#"{{"events":[{items}],"firstEventSequence":1,"lastEventSequence":2,"entropy":"CJ4GEH4E"}}"#)
    }

    #[test]
    fn several_items_are_several_events() {
        let second = ITEM.replace("INVOICE", "CONTACT").replace("66d91787", "6987729c");
        let odd = r#"{"eventType":"UPDATE"}"#;
        let verified = Arriving::signed(&Xero, &body(&[ITEM, odd, "7", &second])).verified(&Xero);
        assert_eq!(verified.answer, Some(Answer::empty(200)));
        let [event, unknown, number, other] = <[_; 4]>::try_from(verified.events).unwrap();
        assert_eq!((event.id, event.fact), (None, vec![]));
        assert_eq!(event.event_type, "xero.invoice.update");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_225_600_500));
        assert_eq!(event.account.as_deref(), Some("66d91787"));
        assert_eq!(event.subject.as_deref(), Some("1e71d60b"));
        assert_eq!(event.payload, ITEM);
        assert_eq!((unknown.event_type.as_str(), &*unknown.payload), ("xero.unknown", odd));
        assert_eq!((number.event_type.as_str(), &*number.payload), ("xero.unknown", "7"));
        assert_eq!(
            (other.event_type.as_str(), other.account.as_deref()),
            ("xero.contact.update", Some("6987729c"))
        );
    }

    #[test]
    fn an_intent_to_receive_is_answered_by_its_signature() {
        let intent = Arriving::signed(&Xero, &body(&[]));
        assert_eq!(intent.clone().verified(&Xero), Verified::handshake(Answer::empty(200)));
        let mut wrong = intent;
        wrong.body.push(b' ');
        assert_eq!(wrong.outcome(&Xero), "signature_mismatch");
    }

    #[test]
    fn an_item_is_its_identity_whatever_is_around_it() {
        let identity = |body: &str| {
            let event = events(&Xero, body).remove(0);
            (event.id, event.fact, event.payload)
        };
        let retry = body(&[ITEM]).replace("CJ4GEH4E", "IUFM4RTO");
        assert_eq!(identity(&retry), identity(&body(&[ITEM])));
        let renewed = ITEM.replace("00:00.5", "00:00.6");
        assert_ne!(identity(&body(&[&renewed])), identity(&body(&[ITEM])));
    }

    #[test]
    fn times_are_utc_with_and_without_a_zone() {
        for (text, expected) in [
            ("2026-01-01T00:00:00", Some(1_767_225_600_000)),
            ("2026-01-01T00:00:00.123Z", Some(1_767_225_600_123)),
            ("2026-01-01", None),
            ("", None),
        ] {
            assert_eq!(unix_ms_from_utc(text), expected, "{text}");
        }
    }

    #[test]
    fn what_holds_no_events_is_refused() {
        for unreadable in
            ["", "[]", "{}", r#"{"events":null}"#, r#"{"events":{}}"#, r#"{"events":[],"events":[]}"#]
        {
            assert_eq!(outcome(&Xero, unreadable), "unreadable_body", "{unreadable}");
        }
    }

    #[test]
    fn the_body_is_signed() {
        assert_header_signs_body(&Xero, SIGNATURE_HEADER, &body(&[ITEM]));
        assert_conventions(&Xero, &body(&[ITEM]));
    }
}
