//! Razorpay: one HMAC over the body.
//!
//! The scheme is that of razorpay 2.9.8 (`validateWebhookSignature`); the fields are those of
//! razorpay.com/docs/webhooks. The id of an event is in a header that is not signed, so the body is part of the
//! identity.

use crate::{
    Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{is_short_text, required_event_type, unix_ms_from_seconds},
    signature::{decode_hex_lower, hmac_sha256, require_hmac_header, sha256_hex},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-razorpay-signature";
/// Header that carries the event's id. It is not signed.
pub const EVENT_ID_HEADER: &str = "x-razorpay-event-id";

const NAME: &str = "razorpay";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const EVENT_FIELDS: &[&str] = &["event", "created_at", "account_id", "payload"];
/// What events are about: the first word of their type, and the key of the object in `payload`.
const KINDS: &[&str] = &[
    "payment",
    "order",
    "refund",
    "subscription",
    "invoice",
    "payment_link",
    "qr_code",
    "virtual_account",
    "transfer",
    "settlement",
    "fund_account",
    "payout",
    "payout_link",
];

/// The provider `razorpay`.
#[derive(Debug, Clone, Copy)]
pub struct Razorpay;

impl Provider for Razorpay {
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
        require_hmac_header(request, &settings.secrets, SIGNATURE_HEADER, decode_hex_lower, &signed)?;
        Ok(Verified::new(vec![read_event(request)?]))
    }
}

/// Signs as Razorpay does. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let digest = hmac_sha256(secret.as_bytes(), &[&request.body]);
    request.with_header(SIGNATURE_HEADER, hex::encode(digest))
}

fn read_event<'a>(request: &Request<'a>) -> Result<VerifiedEvent<'a>, Rejection> {
    let id = request.headers.field(EVENT_ID_HEADER)?;
    if id.is_some_and(|id| !is_short_text(id)) {
        return Err(Rejection::Unreadable("the id is not a short text"));
    }
    let payload = json_text(request.body)?;
    let fields = Fields::read(payload, EVENT_FIELDS)?;
    Ok(VerifiedEvent {
        id: id.map(str::to_owned),
        is_id_unsigned: true,
        fact: vec![sha256_hex(request.body)],
        event_type: required_event_type(NAME, &fields, "event")?,
        occurred_at_unix_ms: fields.lenient("created_at").and_then(unix_ms_from_seconds),
        account: fields.short_text("account_id"),
        subject: subject(&fields),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

/// The id of the object that the type names first: of the order in `order.paid`, which brings the payment as well.
fn subject(fields: &Fields<'_>) -> Option<String> {
    let event: String = fields.lenient("event")?;
    let (kind, _) = event.split_once('.')?;
    let about = fields.object("payload", KINDS)?.object(kind, &["entity"])?;
    about.object("entity", &["id"])?.short_text("id")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, assert_conventions, assert_header_signs_body, event, outcome};

    const BODY: &str = r#"{"entity":"event","account_id":"acc_6GG8nDFS","event":"order.paid",
        "contains":["payment","order"],"payload":{"payment":{"entity":{"id":"pay_1"}},
        "order":{"entity":{"id":"order_1"}}},"created_at":1767233375}"#;

    /// The request with these values of the id header.
    fn with_ids(body: &str, ids: &[&str]) -> Arriving {
        let mut request = Arriving::signed(&Razorpay, body);
        request.headers.extend(ids.iter().map(|id| (EVENT_ID_HEADER, (*id).to_owned())));
        request
    }

    #[test]
    fn what_fields_become() {
        let [event] = <[_; 1]>::try_from(with_ids(BODY, &["wa5XO0Ve"]).verified(&Razorpay).events).unwrap();
        assert_eq!(event.id.as_deref(), Some("wa5XO0Ve"));
        assert_eq!(event.event_type, "razorpay.order.paid");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_233_375_000));
        assert_eq!(event.account.as_deref(), Some("acc_6GG8nDFS"));
        assert_eq!(event.subject.as_deref(), Some("order_1"));
        assert_eq!(event.payload, BODY);
    }

    #[test]
    fn what_is_not_an_event_is_refused() {
        let odd =
            event(&Razorpay, r#"{"event":"payment.captured","created_at":"x","account_id":7,"payload":[]}"#);
        assert_eq!((odd.id, odd.occurred_at_unix_ms, odd.account, odd.subject), (None, None, None, None));
        for body in ["", "null", "{}", r#"{"event":""}"#, r#"{"event":"a","event":"b"}"#] {
            assert_eq!(outcome(&Razorpay, body), "unreadable_body", "{body}");
        }
        for ids in [&[""][..], &["a b"], &["a", "a"]] {
            assert_eq!(with_ids(BODY, ids).outcome(&Razorpay), "unreadable_body", "{ids:?}");
        }
    }

    #[test]
    fn the_body_is_part_of_the_identity() {
        let identity = |body: &str, ids: &[&str]| {
            let event = with_ids(body, ids).verified(&Razorpay).events.remove(0);
            (event.id, event.fact)
        };
        let first = identity(BODY, &["a"]);
        assert_eq!(identity(BODY, &["a"]), first, "a retry");
        assert_ne!(identity(&BODY.replace("pay_1", "pay_2"), &["a"]), first, "another body under the id");
        assert_eq!(identity(BODY, &["b"]).1, first.1, "the body again under another id has the same fact");
        assert_eq!(identity(BODY, &[]), (None, first.1), "without an id the body is the whole identity");
    }

    #[test]
    fn the_body_is_signed() {
        assert_header_signs_body(&Razorpay, SIGNATURE_HEADER, BODY);
        assert_conventions(&Razorpay, BODY);
    }
}
