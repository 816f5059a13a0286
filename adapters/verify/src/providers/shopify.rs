//! Shopify: one HMAC-SHA256 over the body, in one of two families of headers.
//!
//! The scheme is that of @shopify/shopify-api 13.1.0 (`lib/utils/hmac-validator.js`, `lib/webhooks/validate.js`,
//! `lib/webhooks/types.js`): the headers without `X-` win where they are there. All else that is known of an event is in
//! headers that are not signed, so the body is part of the identity.

use crate::{
    Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{is_short_text, platform_event_type, unix_ms_from_rfc3339},
    signature::{decode_base64, encode_base64, hmac_sha256, require_hmac_header, sha256_hex},
};

/// The names of one family of headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderFamily {
    /// Header that carries the signature.
    pub signature: &'static str,
    /// Header of the topic: `orders/create`; in the newer family the kind of object, `Product`.
    pub topic: &'static str,
    /// Header of the shop's domain.
    pub shop_domain: &'static str,
    /// Header of the payload's version.
    pub api_version: &'static str,
    /// Header of the delivery's id.
    pub webhook_id: &'static str,
    /// Header of the event's id, which several deliveries of one event share.
    pub event_id: &'static str,
    /// Header of the time of the event, RFC 3339.
    pub triggered_at: &'static str,
    /// Header of what happened to the object, which only the newer family has. It always has an event's id as well.
    pub action: Option<&'static str>,
    /// Header of the object's id, which only the newer family has.
    pub resource_id: Option<&'static str>,
}

/// The headers that Shopify has always sent.
pub const X_HEADERS: HeaderFamily = HeaderFamily {
    signature: "x-shopify-hmac-sha256",
    topic: "x-shopify-topic",
    shop_domain: "x-shopify-shop-domain",
    api_version: "x-shopify-api-version",
    webhook_id: "x-shopify-webhook-id",
    event_id: "x-shopify-event-id",
    triggered_at: "x-shopify-triggered-at",
    action: None,
    resource_id: None,
};

/// The newer ones.
pub const HEADERS: HeaderFamily = HeaderFamily {
    signature: "shopify-hmac-sha256",
    topic: "shopify-topic",
    shop_domain: "shopify-shop-domain",
    api_version: "shopify-api-version",
    webhook_id: "shopify-webhook-id",
    event_id: "shopify-event-id",
    triggered_at: "shopify-triggered-at",
    action: Some("shopify-action"),
    resource_id: Some("shopify-resource-id"),
};

const NAME: &str = "shopify";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";

/// The provider `shopify`.
#[derive(Debug, Clone, Copy)]
pub struct Shopify;

impl Provider for Shopify {
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
        let is_newer = request.headers.all(HEADERS.signature).next().is_some();
        let names = if is_newer { &HEADERS } else { &X_HEADERS };
        require_hmac_header(request, &settings.secrets, names.signature, decode_base64, &[request.body])?;
        Ok(Verified::new(vec![read_event(request, names)?]))
    }
}

/// Signs as Shopify does, with the headers that begin with `X-`. A request that names no topic is `orders/create` of a shop
/// of Shopify's own example. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let (id, digest) = (request.body_id(), hmac_sha256(secret.as_bytes(), &[&request.body]));
    request
        .with_usual_header(X_HEADERS.topic, "orders/create")
        .with_usual_header(X_HEADERS.shop_domain, "example.myshopify.com")
        .with_usual_header(X_HEADERS.api_version, "2025-10")
        .with_usual_header(X_HEADERS.webhook_id, id.as_str())
        .with_usual_header(X_HEADERS.event_id, id)
        .with_header(X_HEADERS.signature, encode_base64(&digest))
}

/// Reads the event. What the SDK requires is required; the rest is a convenience.
fn read_event<'a>(request: &Request<'a>, names: &HeaderFamily) -> Result<VerifiedEvent<'a>, Rejection> {
    let headers = request.headers;
    let payload = json_text(request.body)?;
    let fields = Fields::read(payload, &["admin_graphql_api_id"])?;

    let webhook_id = headers.required_id(names.webhook_id)?;
    let id = match (headers.id(names.event_id)?, names.action) {
        (Some(event_id), _) => event_id,
        (None, None) => webhook_id,
        (None, Some(_)) => return Err(Rejection::Unreadable("the header of the event's id is missing")),
    };
    let topic = topic(request, names)?;
    let optional = |name: Option<&str>| headers.field(name?).ok().flatten();
    Ok(VerifiedEvent {
        id: Some(id.to_owned()),
        event_type: platform_event_type(NAME, &topic)
            .ok_or(Rejection::Unreadable("the topic is too long"))?,
        is_id_unsigned: true,
        fact: vec![topic, sha256_hex(request.body)],
        occurred_at_unix_ms: optional(Some(names.triggered_at)).and_then(unix_ms_from_rfc3339),
        account: Some(headers.required_id(names.shop_domain)?.to_owned()),
        subject: fields
            .short_text("admin_graphql_api_id")
            .or_else(|| optional(names.resource_id).filter(|id| is_short_text(id)).map(str::to_owned)),
        version: Some(headers.required_id(names.api_version)?.to_owned()),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

/// `orders/create`, which the newer family says in two headers: `Product` and `update` are `Product/update`.
fn topic(request: &Request<'_>, names: &HeaderFamily) -> Result<String, Rejection> {
    let mut topic = request.headers.required_id(names.topic)?.to_owned();
    if let Some(action) = names.action.map(|name| request.headers.id(name)).transpose()?.flatten() {
        topic.push('/');
        topic.push_str(action);
    }
    Ok(topic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, NOW, SECRET, URL, assert_conventions, assert_header_signs_body, outcome};

    const BODY: &str =
        r#"{"id":820982911946154500,"admin_graphql_api_id":"gid://shopify/Order/820982911946154508"}"#;

    /// A body that is signed right, with these headers in place of the usual ones.
    fn signed(body: &str, headers: &[(&'static str, &str)]) -> Arriving {
        let request = Outgoing::post(URL, MEDIA_TYPE, body);
        let request =
            headers.iter().fold(request, |request, (name, value)| request.with_header(name, *value));
        Arriving::signed_at(&Shopify, request, NOW)
    }

    /// The same with the newer headers.
    fn newer(body: &str, headers: &[(&'static str, &str)]) -> Arriving {
        let signature = encode_base64(&hmac_sha256(SECRET.as_bytes(), &[body.as_bytes()]));
        let usual = [
            (HEADERS.signature, signature.as_str()),
            (HEADERS.topic, "Product"),
            (HEADERS.shop_domain, "example-shop.myshopify.com"),
            (HEADERS.api_version, "2026-01"),
            (HEADERS.webhook_id, "w1"),
        ];
        let headers = usual.iter().chain(headers).map(|(name, value)| (*name, (*value).to_owned())).collect();
        Arriving { headers, ..signed(body, &[]) }
    }

    fn event(request: Arriving) -> VerifiedEvent<'static> {
        request.verified(&Shopify).events.remove(0)
    }

    #[test]
    fn what_fields_become() {
        let headers = [
            (X_HEADERS.topic, "orders/paid"),
            (X_HEADERS.shop_domain, "example-shop.myshopify.com"),
            (X_HEADERS.event_id, "1f2a06f1"),
            (X_HEADERS.triggered_at, "2026-01-01T00:05:30.123456789Z"),
        ];
        let event = event(signed(BODY, &headers));
        assert_eq!(event.id.as_deref(), Some("1f2a06f1"));
        assert_eq!(event.event_type, "shopify.orders_paid");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_225_930_123));
        assert_eq!(event.account.as_deref(), Some("example-shop.myshopify.com"));
        assert_eq!(event.subject.as_deref(), Some("gid://shopify/Order/820982911946154508"));
        assert_eq!(event.version.as_deref(), Some("2025-10"));
        assert_eq!(event.payload, BODY);
    }

    #[test]
    fn the_newer_headers_win_and_are_complete() {
        let body = r#"{"topic":"Product"}"#;
        let headers = [
            (HEADERS.event_id, "e1"),
            ("shopify-action", "update"),
            ("shopify-resource-id", "gid://shopify/Product/1"),
        ];
        let event = event(newer(body, &headers));
        assert_eq!((event.id.as_deref(), event.event_type.as_str()), (Some("e1"), "shopify.product_update"));
        assert_eq!(event.subject.as_deref(), Some("gid://shopify/Product/1"));
        assert_eq!(newer(body, &headers[1..]).outcome(&Shopify), "unreadable_body", "no event's id");

        // What the older ones say does not complete the newer ones, and does not stand in for them.
        let mut both = signed(body, &[]);
        both.headers.push((HEADERS.signature, "x".to_owned()));
        assert_eq!(both.outcome(&Shopify), "signature_malformed");
        both.headers.pop();
        both.headers.extend(newer(body, &[]).headers);
        assert_eq!(both.outcome(&Shopify), "unreadable_body");
    }

    #[test]
    fn a_retry_is_the_same_fact_and_another_topic_or_body_is_not() {
        let identity = |body: &str, topic: &str, webhook_id: &str| {
            let headers =
                [(X_HEADERS.topic, topic), (X_HEADERS.webhook_id, webhook_id), (X_HEADERS.event_id, "e1")];
            let event = event(signed(body, &headers));
            (event.id, event.fact)
        };
        let first = identity(BODY, "orders/create", "w1");
        assert_eq!(identity(BODY, "orders/create", "w2"), first, "another subscription");
        assert_ne!(identity(BODY, "orders/updated", "w1"), first);
        assert_ne!(identity(&BODY.replace("508", "509"), "orders/create", "w1"), first);
    }

    #[test]
    fn headers_are_required() {
        let required = [X_HEADERS.topic, X_HEADERS.shop_domain, X_HEADERS.api_version, X_HEADERS.webhook_id];
        for name in required {
            let mut without = signed(BODY, &[]);
            without.headers.retain(|(header, _)| *header != name);
            assert_eq!(without.outcome(&Shopify), "unreadable_body", "{name}");
            without.headers.extend([(name, "a".to_owned()), (name, "a".to_owned())]);
            assert_eq!(without.outcome(&Shopify), "unreadable_body", "{name} twice");
        }
        for (name, value) in required.map(|name| (name, "")).into_iter().chain([(X_HEADERS.event_id, "a b")])
        {
            assert_eq!(signed(BODY, &[(name, value)]).outcome(&Shopify), "unreadable_body", "{name}");
        }
        let mut without = signed(BODY, &[(X_HEADERS.webhook_id, "w1"), (X_HEADERS.triggered_at, "x")]);
        without.headers.retain(|(header, _)| *header != X_HEADERS.event_id);
        let event = event(without);
        assert_eq!((event.id.as_deref(), event.occurred_at_unix_ms), (Some("w1"), None));
        for body in ["", "[]", "null"] {
            assert_eq!(outcome(&Shopify, body), "unreadable_body", "{body}");
        }
    }

    #[test]
    fn the_body_is_signed() {
        assert_header_signs_body(&Shopify, X_HEADERS.signature, BODY);
        assert_conventions(&Shopify, BODY);
    }
}
