//! WooCommerce: one HMAC-SHA256 over the body, and a ping that is not signed.
//!
//! The scheme is that of woocommerce/woocommerce (`plugins/woocommerce/includes/class-wc-webhook.php`: `deliver`,
//! `deliver_ping`, `generate_signature`). Topic and delivery are in headers that are not signed, so the body is part of
//! the identity.

use crate::{
    Answer, Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{header_event_type, is_short_text, unix_ms_from_rfc3339},
    signature::{decode_base64, encode_base64, hmac_sha256, require_hmac_header, sha256_hex},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-wc-webhook-signature";
/// Header of what happened: `order.created`. It is not signed.
pub const TOPIC_HEADER: &str = "x-wc-webhook-topic";
/// Header of the delivery's id, a hash of the webhook and the second. It is not signed.
pub const DELIVERY_HEADER: &str = "x-wc-webhook-delivery-id";
/// How the body of a ping begins; the webhook's number follows.
pub const PING_PREFIX: &str = "webhook_id=";

const NAME: &str = "woocommerce";
const METHOD: &str = "POST";
const MEDIA_TYPES: &[&str] = &["application/json", "application/x-www-form-urlencoded"];
const EVENT_FIELDS: &[&str] = &["id", "date_modified_gmt", "date_created_gmt"];

/// The provider `woocommerce`.
#[derive(Debug, Clone, Copy)]
pub struct WooCommerce;

impl Provider for WooCommerce {
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
        settings.require_secrets()?;
        if is_unsigned_ping(request) {
            return Ok(Verified::handshake(Answer::empty(200)));
        }
        let signed = [request.body];
        require_hmac_header(request, &settings.secrets, SIGNATURE_HEADER, decode_base64, &signed)?;
        Ok(Verified::new(vec![read_event(request)?]))
    }
}

/// Signs as WooCommerce does. A request that names no topic is `order.created`. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let (id, digest) = (request.body_id(), hmac_sha256(secret.as_bytes(), &[&request.body]));
    request
        .with_usual_header(TOPIC_HEADER, "order.created")
        .with_usual_header(DELIVERY_HEADER, id)
        .with_header(SIGNATURE_HEADER, encode_base64(&digest))
}

/// WooCommerce does not save a webhook whose URL does not answer this with 200, and does not sign it. It is let through
/// only if it could not be anything else, and tells the sender nothing but that there is an endpoint.
fn is_unsigned_ping(request: &Request<'_>) -> bool {
    let is_signed = request.headers.all(SIGNATURE_HEADER).next().is_some();
    let number = request.body.strip_prefix(PING_PREFIX.as_bytes()).unwrap_or_default();
    !is_signed && (1..=20).contains(&number.len()) && number.iter().all(u8::is_ascii_digit)
}

fn read_event<'a>(request: &Request<'a>) -> Result<VerifiedEvent<'a>, Rejection> {
    let payload = json_text(request.body)?;
    let fields = Fields::read(payload, EVENT_FIELDS)?;
    let happened =
        fields.lenient("date_modified_gmt").or_else(|| fields.lenient::<String>("date_created_gmt"));
    Ok(VerifiedEvent {
        id: Some(request.headers.required_id(DELIVERY_HEADER)?.to_owned()),
        is_id_unsigned: true,
        fact: vec![sha256_hex(request.body)],
        event_type: header_event_type(NAME, request.headers, TOPIC_HEADER)?,
        occurred_at_unix_ms: happened.and_then(|time| unix_ms_from_rfc3339(&[&time, "Z"].concat())),
        subject: subject(request, &fields),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

/// `order/727`: ids are numbers that count within a kind of object, which is the topic's first word.
fn subject(request: &Request<'_>, fields: &Fields<'_>) -> Option<String> {
    let topic = request.headers.field(TOPIC_HEADER).ok().flatten()?;
    let (kind, _) = topic.split_once('.')?;
    let id: u64 = fields.lenient("id")?;
    Some([kind, "/", &id.to_string()].concat()).filter(|subject| is_short_text(subject))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Secrets,
        testing::{
            Arriving, NOW, URL, assert_conventions, assert_header_signs_body, event, outcome, settings,
        },
    };

    const BODY: &str = r#"{"id":727,"status":"processing","date_created_gmt":"2026-01-01T00:00:00",
        "date_modified_gmt":"2026-01-01T00:01:00"}"#;

    fn signed(body: &str, topic: &str, delivery: &str) -> Arriving {
        let request = Outgoing::post(URL, MEDIA_TYPES[0], body);
        let request = request.with_header(TOPIC_HEADER, topic).with_header(DELIVERY_HEADER, delivery);
        Arriving::signed_at(&WooCommerce, request, NOW)
    }

    #[test]
    fn what_fields_become() {
        let event = signed(BODY, "order.updated", "9e6b1d34").verified(&WooCommerce).events.remove(0);
        assert_eq!(event.id.as_deref(), Some("9e6b1d34"));
        assert_eq!(event.event_type, "woocommerce.order.updated");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_225_660_000));
        assert_eq!((event.subject.as_deref(), event.account), (Some("order/727"), None));
        assert_eq!(event.payload, BODY);
    }

    #[test]
    fn conveniences_are_left_out() {
        let created = event(&WooCommerce, r#"{"date_created_gmt":"2026-01-01T00:00:00"}"#);
        assert_eq!((created.occurred_at_unix_ms, created.subject), (Some(1_767_225_600_000), None));
        let odd = event(&WooCommerce, r#"{"id":"x","date_modified_gmt":"2026-01-01T00:00:00+01:00"}"#);
        assert_eq!((odd.occurred_at_unix_ms, odd.subject), (None, None));
        for body in ["", "[]", "{", r#"{"id":1,"id":2}"#] {
            assert_eq!(outcome(&WooCommerce, body), "unreadable_body", "{body}");
        }
    }

    #[test]
    fn two_deliveries_in_one_second_are_two_facts() {
        let identity = |body: &str, id: &str| {
            let event = signed(body, "order.updated", id).verified(&WooCommerce).events.remove(0);
            (event.id, event.fact)
        };
        assert_eq!(identity(BODY, "a"), identity(BODY, "a"));
        assert_ne!(identity(BODY, "a"), identity(&BODY.replace("727", "728"), "a"));
        assert_ne!(identity(BODY, "a"), identity(BODY, "b"));
    }

    /// A request as WooCommerce sends it to try a URL.
    fn ping(body: &str) -> Arriving {
        let headers = vec![("content-type", MEDIA_TYPES[1].to_owned())];
        Arriving { method: "POST", url: URL.to_owned(), headers, body: body.as_bytes().to_vec() }
    }

    #[test]
    fn only_a_ping_may_be_unsigned() {
        assert_eq!(ping("webhook_id=3").verified(&WooCommerce), Verified::handshake(Answer::empty(200)));
        for body in [
            "",
            "webhook_id=",
            "webhook_id=a",
            "webhook_id=3&a=1",
            "a=1&webhook_id=3",
            "webhook_id=3\n",
            BODY,
        ] {
            assert_eq!(ping(body).outcome(&WooCommerce), "signature_missing", "{body}");
        }
        let mut signed = ping("webhook_id=3");
        signed.headers.push((SIGNATURE_HEADER, encode_base64(&[0; 32])));
        assert_eq!(signed.outcome(&WooCommerce), "signature_mismatch");
        let mut unset = settings(&WooCommerce);
        unset.secrets = Secrets::default();
        assert_eq!(ping("webhook_id=3").outcome_with(&WooCommerce, &unset), "no_secret");
    }

    #[test]
    fn headers_are_required() {
        for (topic, delivery) in [("", "a"), ("a", ""), ("a", "a b")] {
            let outcome = signed(BODY, topic, delivery).outcome(&WooCommerce);
            assert_eq!(outcome, "unreadable_body", "{topic:?} {delivery:?}");
        }
        for name in [TOPIC_HEADER, DELIVERY_HEADER] {
            let mut without = signed(BODY, "a", "a");
            without.headers.retain(|(header, _)| *header != name);
            assert_eq!(without.outcome(&WooCommerce), "unreadable_body", "{name}");
        }
    }

    #[test]
    fn the_body_is_signed() {
        assert_header_signs_body(&WooCommerce, SIGNATURE_HEADER, BODY);
        assert_conventions(&WooCommerce, BODY);
    }
}
