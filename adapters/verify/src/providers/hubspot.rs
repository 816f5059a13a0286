//! HubSpot: batches of events with the signature of version 3.
//!
//! The scheme is that of @hubspot/api-client 13.5.0 (`signature.js`): base64 of HMAC-SHA256 over method, URI, body and time,
//! without separators. HubSpot's page "Validating requests" wants some escapes of the URI decoded first, which the SDK
//! does not do; both spellings count here. Versions 1 and 2, plain digests that HubSpot sends beside it, never do.

use crate::{
    Context, Outgoing, Provider, ProviderOption, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, items, json_text},
    event::event_type_or_unknown,
    signature::{
        decode_base64, encode_base64, hmac_sha256, parse_unix_seconds, require_fresh_ms, require_hmac_sha256,
    },
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-hubspot-signature-v3";
/// Header that carries the signed time, milliseconds since 1970.
pub const TIMESTAMP_HEADER: &str = "x-hubspot-request-timestamp";

/// The escapes that HubSpot may decode before it signs, and what each stands for.
const DECODED_ESCAPES: &[(&str, char)] = &[
    ("3A", ':'),
    ("2F", '/'),
    ("3F", '?'),
    ("40", '@'),
    ("21", '!'),
    ("24", '$'),
    ("27", '\''),
    ("28", '('),
    ("29", ')'),
    ("2A", '*'),
    ("2C", ','),
    ("3B", ';'),
];

const NAME: &str = "hubspot";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";

const EVENT_FIELDS: &[&str] = &["eventId", "subscriptionType", "occurredAt", "portalId", "objectId"];
/// What makes another fact under one `eventId`, which HubSpot does not promise to be unique. The count of attempts is
/// left out, because a retry changes it.
const FACT_FIELDS: &[&str] = &[
    "portalId",
    "appId",
    "subscriptionId",
    "subscriptionType",
    "objectId",
    "occurredAt",
    "propertyName",
    "fromObjectId",
    "toObjectId",
];

/// The provider `hubspot`.
#[derive(Debug, Clone, Copy)]
pub struct HubSpot;

impl Provider for HubSpot {
    fn name(&self) -> &'static str {
        NAME
    }

    fn options(&self) -> &'static [ProviderOption] {
        &[ProviderOption::URL]
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method(METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        verify_signature(request, settings, context.now_unix)?;
        let events = items(json_text(request.body)?)?;
        Ok(Verified::new(events.into_iter().map(read_event).collect()))
    }
}

fn verify_signature(request: &Request<'_>, settings: &Settings, now_unix: i64) -> Result<(), Rejection> {
    settings.require_secrets()?;
    let signature = decode_base64(request.headers.signature(SIGNATURE_HEADER)?);
    let signature = signature.ok_or(Rejection::SignatureMalformed("not the base64 of 32 bytes"))?;
    let timestamp = request.headers.signature(TIMESTAMP_HEADER)?;
    // Milliseconds have the same one spelling as seconds.
    let signed_unix_ms = parse_unix_seconds(timestamp)
        .ok_or(Rejection::SignatureMalformed("the timestamp is not a count of milliseconds"))?;
    let url = settings.signed_url(request);
    let check = |url: &str| {
        let signed = signed_parts(request.method, url, request.body, timestamp);
        require_hmac_sha256(&settings.secrets, &signature, &signed).map(|_| ())
    };
    let (as_sent, decoded) = (check(url), check(&decode_escapes(url)));
    as_sent.or(decoded)?;
    require_fresh_ms(signed_unix_ms, now_unix, settings.tolerance_seconds)
}

fn signed_parts<'a>(method: &'a str, url: &'a str, body: &'a [u8], timestamp: &'a str) -> [&'a [u8]; 4] {
    [method.as_bytes(), url.as_bytes(), body, timestamp.as_bytes()]
}

/// The URL with those of its escapes decoded that HubSpot names; all others stay.
fn decode_escapes(url: &str) -> String {
    let mut pieces = url.split('%');
    let mut decoded = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let digits = piece.get(..2).unwrap_or_default();
        let escape = DECODED_ESCAPES.iter().find(|(escape, _)| escape.eq_ignore_ascii_case(digits));
        if let Some((escape, character)) = escape {
            decoded.push(*character);
            decoded.push_str(piece.get(escape.len()..).unwrap_or_default());
        } else {
            decoded.push('%');
            decoded.push_str(piece);
        }
    }
    decoded
}

/// One item of a batch. Nothing in it is an error, because it must not hide the items beside it; an item that cannot
/// be read is unknown, and its payload is its identity.
fn read_event(payload: &str) -> VerifiedEvent<'_> {
    let Ok(fields) = Fields::read(payload, EVENT_FIELDS) else {
        return VerifiedEvent {
            event_type: event_type_or_unknown(NAME, None),
            payload: payload.into(),
            ..VerifiedEvent::default()
        };
    };
    let hubspot_type: Option<String> = fields.lenient("subscriptionType");
    let id = fields.text_or_number("eventId");
    let fact = if id.is_some() { fact(payload) } else { Vec::new() };
    VerifiedEvent {
        id,
        fact,
        event_type: event_type_or_unknown(NAME, hubspot_type.as_deref()),
        occurred_at_unix_ms: fields.time_in_ms("occurredAt"),
        account: fields.text_or_number("portalId"),
        subject: fields.text_or_number("objectId"),
        payload: payload.into(),
        ..VerifiedEvent::default()
    }
}

fn fact(payload: &str) -> Vec<String> {
    let Ok(fields) = Fields::read(payload, FACT_FIELDS) else {
        return Vec::new();
    };
    FACT_FIELDS.iter().map(|name| fields.raw(name).unwrap_or_default().to_owned()).collect()
}

/// Signs as HubSpot does, the URL as it is.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, now_unix: i64) -> Outgoing {
    let timestamp = now_unix.saturating_mul(1000).to_string();
    let signed = signed_parts(request.method, &request.url, &request.body, &timestamp);
    let signature = encode_base64(&hmac_sha256(secret.as_bytes(), &signed));
    request.with_header(TIMESTAMP_HEADER, timestamp).with_header(SIGNATURE_HEADER, signature)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::trial::{NOW, SECRET, Trial, URL};

    const EVENT: &str = r#"{"eventId":100,"subscriptionId":8,"portalId":62515,"appId":5,"occurredAt":1767237942123,
        "subscriptionType":"contact.propertyChange","attemptNumber":0,"objectId":123,"propertyName":"a","propertyValue":"1.0"}"#;

    fn trial() -> Trial {
        Trial::of(NAME)
    }

    fn batch(events: &[&str]) -> String {
        format!("[ {} ]", events.join(" ,\n"))
    }

    #[test]
    fn an_event_is_read_in_full() {
        let event = trial().read_one(&batch(&[EVENT]));
        assert_eq!(event.id.as_deref(), Some("100"));
        let fact = ["62515", "5", "8", "\"contact.propertyChange\"", "123", "1767237942123", "\"a\"", "", ""];
        assert_eq!(event.fact, fact);
        assert_eq!(event.event_type, "hubspot.contact.propertychange");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_237_942_123));
        assert_eq!((event.account.as_deref(), event.subject.as_deref()), (Some("62515"), Some("123")));
        assert_eq!(event.payload, EVENT);
    }

    #[test]
    fn one_bad_item_does_not_hide_the_others() {
        let bad = ["null", "7", r#"{"eventId":1,"eventId":2}"#, r#"{"eventId":{},"subscriptionType":""}"#];
        let events = trial().read(&batch(&[bad[0], EVENT, bad[1], bad[2], bad[3], EVENT])).unwrap();
        let types: Vec<_> = events.iter().map(|event| event.event_type.as_str()).collect();
        let (known, unknown) = ("hubspot.contact.propertychange", "hubspot.unknown");
        assert_eq!(types, [unknown, known, unknown, unknown, unknown, known]);
        for (event, payload) in events.iter().zip([bad[0], EVENT, bad[1], bad[2], bad[3], EVENT]) {
            assert_eq!(event.payload, payload);
            assert_eq!(event.id.is_none(), event.fact.is_empty());
        }
        assert_eq!(trial().read("[]"), Ok(vec![]));
        for body in ["", "{}", EVENT, "[1,]", "null"] {
            assert_eq!(trial().reason(trial().signed(body)), Some("unreadable_body"), "{body}");
        }
    }

    #[test]
    fn a_retry_has_the_same_identity_and_another_fact_another_one() {
        let identity = |event: &str| {
            let event = trial().read_one(&batch(&[event]));
            (event.id, event.fact)
        };
        let first = identity(EVENT);
        assert_eq!(identity(&EVENT.replace(r#""attemptNumber":0"#, r#""attemptNumber":1"#)), first);
        for (from, to) in [
            (":100", ":101"),
            (":62515", ":62516"),
            (":8,", ":9,"),
            (":123,", ":124,"),
            ("42123", "42124"),
            ("propertyChange", "creation"),
            (r#""a""#, r#""b""#),
        ] {
            assert_ne!(identity(&EVENT.replace(from, to)), first, "{from}");
        }
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        let request = trial().signed(&batch(&[EVENT]));
        trial().assert_flips_are_refused(&request, &[SIGNATURE_HEADER, TIMESTAMP_HEADER]);
        trial().assert_url_flips_are_refused(&request);
    }

    #[test]
    fn the_url_counts_as_sent_or_with_the_named_escapes_decoded() {
        assert_eq!(decode_escapes("%3a%2F%40%7C%20%%3F%2"), ":/@%7C%20%?%2");
        let signed_for = |signed_url: &str, url: &str| {
            let request = trial().signed_at(NOW, Outgoing::post(signed_url, MEDIA_TYPE, "[]"));
            Outgoing { url: url.to_owned(), ..request }
        };
        let sent = "https://x.test/a?b=c%40d%20e";
        for signed in [sent, "https://x.test/a?b=c@d%20e"] {
            assert_eq!(trial().reason(signed_for(signed, sent)), None, "{signed}");
        }
        let fully = "https://x.test/a?b=c@d e";
        assert_eq!(trial().reason(signed_for(fully, sent)), Some("signature_mismatch"));
        let behind_a_proxy = trial().with_option("url", sent);
        assert_eq!(behind_a_proxy.reason(signed_for(sent, URL)), None);
        assert_eq!(behind_a_proxy.reason(signed_for(URL, URL)), Some("signature_mismatch"));
    }

    #[test]
    fn time_is_in_milliseconds() {
        let at = |unix_ms: &str| {
            let signed = signed_parts(METHOD, URL, b"[]", unix_ms);
            Outgoing::post(URL, MEDIA_TYPE, "[]")
                .with_header(TIMESTAMP_HEADER, unix_ms)
                .with_header(SIGNATURE_HEADER, encode_base64(&hmac_sha256(SECRET.as_bytes(), &signed)))
        };
        for (unix_ms, reason) in [
            ("1767237645000", None),
            ("1767238245000", None),
            ("1767237644999", Some("signature_stale")),
            ("1767238245001", Some("signature_stale")),
            ("1767237945", Some("signature_stale")),
            ("", Some("signature_malformed")),
            ("NaN", Some("signature_malformed")),
            ("1767237945000.0", Some("signature_malformed")),
        ] {
            assert_eq!(trial().reason(at(unix_ms)), reason, "{unix_ms}");
        }
        let mut without = at("1767237945000");
        without.headers.retain(|(name, _)| *name != TIMESTAMP_HEADER);
        assert_eq!(trial().reason(without), Some("signature_missing"));
    }
}
