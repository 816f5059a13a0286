//! Adyen: payments webhooks, in which each item carries its own HMAC, and the newer webhooks with one over the body.
//!
//! Both schemes are those of @adyen/api-library 32.1.0 (`hmacValidator.js`); the fields are those of
//! docs.adyen.com/development-resources/webhooks. An item's HMAC covers eight of its fields and nothing else, so
//! identity and type are made of these eight alone.

use serde_json::{Map, Value};

use crate::{
    Answer, Context, Outgoing, Provider, Rejection, Request, Secrets, Settings, Verified, VerifiedEvent,
    body::{Fields, items, json_text},
    event::{event_type_or_unknown, is_short_text, required_event_type, unix_ms_from_rfc3339},
    signature::{any_equal, decode_base64, encode_base64, hmac_sha256},
};

/// Header that carries the signature of a newer webhook.
pub const SIGNATURE_HEADER: &str = "hmacsignature";
/// What Adyen wants to read before it stops repeating a payments webhook of the older kind.
pub const ACCEPTED: &str = "[accepted]";

const NAME: &str = "adyen";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const BODY_FIELDS: &[&str] =
    &["notificationItems", "live", "type", "eventType", "data", "environment", "timestamp", "createdAt"];
const ITEM_FIELDS: &[&str] = &[
    "pspReference",
    "originalReference",
    "merchantAccountCode",
    "merchantReference",
    "amount",
    "eventCode",
    "success",
    "additionalData",
    "eventDate",
];

/// The provider `adyen`.
#[derive(Debug, Clone, Copy)]
pub struct Adyen;

impl Provider for Adyen {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Where the signature is in the body, the body has to be read to find it. Nothing of it is used until every item
    /// is found to be signed, and a body in which no signature can be found counts as unsigned, not as unreadable.
    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        _context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method(METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        let keys = keys(&settings.secrets)?;
        let is_signed_whole = verify_header(request, &keys)?;
        let body = json_text(request.body).and_then(|text| Ok((text, Fields::read(text, BODY_FIELDS)?)));
        let (text, fields) = match body {
            Err(_) if !is_signed_whole => return Err(Rejection::SignatureMissing),
            body => body?,
        };
        let events = match fields.raw("notificationItems") {
            Some(list) => read_items(list, flag(&fields, "live", "true", "false"), &keys)?,
            None if is_signed_whole => vec![read_platform_event(text, &fields)?],
            None => return Err(Rejection::SignatureMissing),
        };
        Ok(Verified::new(events).with_answer(Answer::text(ACCEPTED)))
    }
}

/// The keys, which are shown as hex. One that is not hex verifies nothing.
fn keys(secrets: &Secrets) -> Result<Vec<Vec<u8>>, Rejection> {
    let keys: Vec<_> = secrets.iter().filter_map(|secret| hex::decode(secret.expose()).ok()).collect();
    if keys.is_empty() { Err(Rejection::NoSecret) } else { Ok(keys) }
}

fn require_key_match(keys: &[Vec<u8>], signature: &str, signed: &[u8]) -> Result<(), Rejection> {
    let offered: [u8; 32] = decode_base64(signature)
        .ok_or(Rejection::SignatureMalformed("a signature is not the base64 of a digest"))?;
    let fits =
        keys.iter().fold(false, |fits, key| fits | any_equal(&hmac_sha256(key, &[signed]), &[offered]));
    if fits { Ok(()) } else { Err(Rejection::SignatureMismatch) }
}

/// Whether the header signs the body. It is absent in payments webhooks; one that is wrong refuses the request.
fn verify_header(request: &Request<'_>, keys: &[Vec<u8>]) -> Result<bool, Rejection> {
    match request.headers.signature(SIGNATURE_HEADER) {
        Err(Rejection::SignatureMissing) => Ok(false),
        header => require_key_match(keys, header?, request.body).map(|()| true),
    }
}

/// The events of a payments webhook, each of whose items has to be signed.
fn read_items<'a>(
    list: &'a str,
    livemode: Option<bool>,
    keys: &[Vec<u8>],
) -> Result<Vec<VerifiedEvent<'a>>, Rejection> {
    let items = items(list).map_err(|_| Rejection::SignatureMissing)?;
    if items.is_empty() {
        return Err(Rejection::SignatureMissing);
    }
    items.into_iter().map(|item| read_item(item, livemode, keys)).collect()
}

fn read_item<'a>(
    item: &'a str,
    livemode: Option<bool>,
    keys: &[Vec<u8>],
) -> Result<VerifiedEvent<'a>, Rejection> {
    const FORM: Rejection = Rejection::SignatureMalformed("an item is not of the form that is signed");
    let wrapper = Fields::read(item, &["NotificationRequestItem"]).map_err(|_| FORM)?;
    let payload = wrapper.raw("NotificationRequestItem").ok_or(Rejection::SignatureMissing)?;
    let fields = Fields::read(payload, ITEM_FIELDS).map_err(|_| FORM)?;
    let additional_data = fields.object("additionalData", &["hmacSignature"]);
    let signature: Option<String> = additional_data.and_then(|data| data.lenient("hmacSignature"));
    let signed = SignedFields::read(&fields).ok_or(FORM)?;
    let signed_text = signed.text();
    require_key_match(keys, &signature.ok_or(Rejection::SignatureMissing)?, signed_text.as_bytes())?;

    let is_modification = !signed.original_reference.is_empty();
    let subject = if is_modification { &signed.original_reference } else { &signed.psp_reference };
    let id = [signed.psp_reference.as_str(), ":", signed.event_code.as_str()].concat();
    let has_id = is_short_text(&id) && !signed.psp_reference.is_empty() && !signed.event_code.is_empty();
    let event_date: Option<String> = fields.lenient("eventDate");
    Ok(VerifiedEvent {
        id: has_id.then_some(id),
        fact: vec![signed_text],
        event_type: event_type_or_unknown(NAME, Some(&signed.event_code)),
        occurred_at_unix_ms: event_date.as_deref().and_then(unix_ms_from_rfc3339),
        account: Some(signed.merchant_account_code).filter(|account| is_short_text(account)),
        livemode,
        subject: Some(subject.clone()).filter(|subject| is_short_text(subject)),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

/// The eight fields of an item that are signed.
struct SignedFields {
    psp_reference: String,
    original_reference: String,
    merchant_account_code: String,
    merchant_reference: String,
    value: String,
    currency: String,
    event_code: String,
    success: String,
}

impl SignedFields {
    /// Reads them, absent ones as empty; `None` when one does not have the type that Adyen sends.
    ///
    /// What is signed is the eight texts with colons between them, not escaped. A colon may be in the merchant's own
    /// reference only, so that one signed text can be read in one way: elsewhere it could have been moved there from a
    /// neighbour. And as the last text is `true`, `false` or nothing, a signed body of a newer webhook, which ends in a
    /// brace, cannot be taken for an item.
    fn read(fields: &Fields<'_>) -> Option<Self> {
        let text = |fields: &Fields<'_>, name: &str| {
            fields.value::<String>(name).ok().map(Option::unwrap_or_default)
        };
        let amount = Fields::read(fields.raw("amount").unwrap_or("{}"), &["value", "currency"]).ok()?;
        let value: Option<i64> = amount.value("value").ok()?;
        let signed = Self {
            psp_reference: text(fields, "pspReference")?,
            original_reference: text(fields, "originalReference")?,
            merchant_account_code: text(fields, "merchantAccountCode")?,
            merchant_reference: text(fields, "merchantReference")?,
            value: value.map(|value| value.to_string()).unwrap_or_default(),
            currency: text(&amount, "currency")?,
            event_code: text(fields, "eventCode")?,
            success: text(fields, "success")?,
        };
        let without_colon = [
            &signed.psp_reference,
            &signed.original_reference,
            &signed.merchant_account_code,
            &signed.currency,
            &signed.event_code,
        ];
        let has_form = without_colon.into_iter().all(|text| !text.contains(':'))
            && matches!(signed.success.as_str(), "true" | "false" | "");
        has_form.then_some(signed)
    }

    /// The text that is signed.
    fn text(&self) -> String {
        let parts = [
            self.psp_reference.as_str(),
            &self.original_reference,
            &self.merchant_account_code,
            &self.merchant_reference,
            &self.value,
            &self.currency,
            &self.event_code,
            &self.success,
        ];
        parts.join(":")
    }
}

/// The event of a newer webhook, whose whole body is signed. It has no id; the body is its identity.
fn read_platform_event<'a>(payload: &'a str, fields: &Fields<'a>) -> Result<VerifiedEvent<'a>, Rejection> {
    let type_field = if fields.raw("type").is_some() { "type" } else { "eventType" };
    let data = fields.object("data", &["id", "balancePlatform", "merchantId"]);
    let from_data = |name: &str| data.as_ref().and_then(|data| data.short_text(name));
    let time: Option<String> = fields.lenient("timestamp").or_else(|| fields.lenient("createdAt"));
    Ok(VerifiedEvent {
        event_type: required_event_type(NAME, fields, type_field)?,
        occurred_at_unix_ms: time.as_deref().and_then(unix_ms_from_rfc3339),
        account: from_data("balancePlatform").or_else(|| from_data("merchantId")),
        livemode: flag(fields, "environment", "live", "test"),
        subject: from_data("id"),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

/// A field that says one of two things.
fn flag(fields: &Fields<'_>, name: &str, yes: &str, no: &str) -> Option<bool> {
    let text: String = fields.lenient(name)?;
    if text == yes { Some(true) } else { (text == no).then_some(false) }
}

/// Signs as Adyen does: each item of a payments webhook, which rewrites the body, or else the body in the header. The
/// time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let key = hex::decode(secret).unwrap_or_default();
    if let Some(body) = sign_items(&request.body, &key) {
        return Outgoing { body, ..request };
    }
    let digest = hmac_sha256(&key, &[&request.body]);
    request.with_header(SIGNATURE_HEADER, encode_base64(&digest)).with_header("protocol", "HmacSHA256")
}

/// The body with its items signed; `None` when it is not a payments webhook.
fn sign_items(body: &[u8], key: &[u8]) -> Option<Vec<u8>> {
    let mut body: Value = serde_json::from_slice(body).ok()?;
    for item in body.get_mut("notificationItems")?.as_array_mut()? {
        let item = item.get_mut("NotificationRequestItem")?;
        let text = item.to_string();
        let signed = SignedFields::read(&Fields::read(&text, ITEM_FIELDS).ok()?)?;
        let signature = encode_base64(&hmac_sha256(key, &[signed.text().as_bytes()]));
        let additional_data =
            item.as_object_mut()?.entry("additionalData").or_insert(Value::Object(Map::new()));
        additional_data.as_object_mut()?.insert("hmacSignature".to_owned(), signature.into());
    }
    Some(body.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        Arriving, SECRET, assert_conventions, assert_header_signs_body, event, events, outcome, settings,
    };

    const ITEM: &str = r#"{"NotificationRequestItem":{"amount":{"currency":"EUR","value":1130},"eventCode":"CAPTURE",
        "eventDate":"2026-01-01T01:02:03+01:00","merchantAccountCode":"TestMerchant","merchantReference":"a:b\\c",
        "pspReference":"VZJ8VPI0","originalReference":"X2MVAPL0","reason":"1111","success":"true"}}"#;
    const PLATFORM: &str = r#"{"data":{"balancePlatform":"Example","id":"AHSM08S8"},"environment":"test",
        "type":"balancePlatform.accountHolder.updated","timestamp":"2026-01-01T00:00:00+00:00"}"#;

    fn body(items: &[&str]) -> String {
        format!(r#"{{"live":"false","notificationItems":[{}]}}"#, items.join(","))
    }

    /// The request with another text in its body, signatures as they were.
    fn changed(body: &str, from: &str, to: &str) -> Arriving {
        let mut request = Arriving::signed(&Adyen, body);
        let text = String::from_utf8(request.body).unwrap();
        assert!(text.contains(from), "{from} in {text}");
        request.body = text.replace(from, to).into_bytes();
        request
    }

    #[test]
    fn what_fields_of_an_item_become() {
        let verified = Arriving::signed(&Adyen, &body(&[ITEM])).verified(&Adyen);
        assert_eq!(verified.answer, Some(Answer::text("[accepted]")));
        let [event] = <[_; 1]>::try_from(verified.events).unwrap();
        assert_eq!(event.id.as_deref(), Some("VZJ8VPI0:CAPTURE"));
        assert_eq!(event.fact, ["VZJ8VPI0:X2MVAPL0:TestMerchant:a:b\\c:1130:EUR:CAPTURE:true"]);
        assert_eq!(event.event_type, "adyen.capture");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_225_723_000));
        assert_eq!((event.account.as_deref(), event.livemode), (Some("TestMerchant"), Some(false)));
        assert_eq!(event.subject.as_deref(), Some("X2MVAPL0"));
        assert!(event.payload.starts_with(r#"{"additionalData":"#) && event.payload.ends_with("\"true\"}"));

        let first = ITEM.replace("X2MVAPL0", "").replace("CAPTURE", "AUTHORISATION").replace("1130", "-5");
        let event = crate::testing::event(&Adyen, &body(&[&first]));
        assert_eq!(event.subject.as_deref(), Some("VZJ8VPI0"));
        assert_eq!(event.fact, ["VZJ8VPI0::TestMerchant:a:b\\c:-5:EUR:AUTHORISATION:true"]);
    }

    #[test]
    fn what_fields_of_a_newer_webhook_become() {
        let event = event(&Adyen, PLATFORM);
        assert_eq!((event.id, event.fact), (None, vec![]));
        assert_eq!(event.event_type, "adyen.balanceplatform.accountholder.updated");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_225_600_000));
        assert_eq!((event.account.as_deref(), event.livemode), (Some("Example"), Some(false)));
        assert_eq!(event.subject.as_deref(), Some("AHSM08S8"));
        assert_eq!(event.payload, PLATFORM);
        for unreadable in ["", "[]", "{}", r#"{"type":7}"#] {
            assert_eq!(outcome(&Adyen, unreadable), "unreadable_body", "{unreadable}");
        }
    }

    #[test]
    fn several_items_are_several_events_and_one_that_is_wrong_refuses_all() {
        let second = ITEM.replace("VZJ8VPI0", "WAOPE15W");
        let odd = r#"{"NotificationRequestItem":{"merchantReference":"r"}}"#;
        let three = body(&[ITEM, &second, odd]);
        let events = events(&Adyen, &three);
        let ids: Vec<_> = events.iter().map(|event| event.id.as_deref()).collect();
        assert_eq!(ids, [Some("VZJ8VPI0:CAPTURE"), Some("WAOPE15W:CAPTURE"), None]);
        assert_eq!(events[2].event_type, "adyen.unknown");
        assert_eq!(events[2].fact, [":::r::::"]);
        for (from, to, expected) in [
            (r#""pspReference":"VZJ8VPI0""#, r#""pspReference":"VZJ8VPI1""#, "signature_mismatch"),
            ("WAOPE15W", "WAOPE15V", "signature_mismatch"),
            (r#""merchantReference":"r""#, r#""merchantReference":"s""#, "signature_mismatch"),
            (r#""merchantReference":"r""#, r#""merchantReference":1"#, "signature_malformed"),
            (r#"}}]"#, r#"}},{"NotificationRequestItem":{}}]"#, "signature_missing"),
            (r#"}}]"#, r#"}},{}]"#, "signature_missing"),
            (r#"}}]"#, r#"}},7]"#, "signature_malformed"),
        ] {
            assert_eq!(changed(&three, from, to).outcome(&Adyen), expected, "{to}");
        }
    }

    #[test]
    fn no_bit_of_an_item_makes_another_fact() {
        let request = Arriving::signed(&Adyen, &body(&[ITEM]));
        let identity = |request: Arriving| {
            let event = request.verified(&Adyen).events.remove(0);
            (event.id, event.fact, event.event_type, event.account, event.subject)
        };
        let original = identity(request.clone());
        let mut accepted = 0;
        for bit in 0..request.body.len() * 8 {
            let mut flipped = request.clone();
            flipped.body[bit / 8] ^= 1 << (bit % 8);
            if flipped.outcome(&Adyen) == "accept" {
                accepted += 1;
                assert_eq!(identity(flipped), original, "bit {bit}");
            }
        }
        assert!(accepted > 0, "reason, eventDate and live are not signed");
    }

    #[test]
    fn one_signed_text_has_one_reading() {
        let item = ITEM.replace("a:b\\\\c", "B:C");
        assert_eq!(outcome(&Adyen, &body(&[&item])), "accept");
        for (from, to) in [
            // The border between account and reference, and between original reference and account.
            (r#""TestMerchant","merchantReference":"B:C""#, r#""TestMerchant:B","merchantReference":"C""#),
            (r#""X2MVAPL0""#, r#""X2MVAPL0:TestMerchant""#),
        ] {
            assert_eq!(changed(&body(&[&item]), from, to).outcome(&Adyen), "signature_malformed", "{to}");
        }
        for (from, to) in [
            ("1130", "\"1130\""),
            ("1130", "1130.0"),
            ("1130", "1130,\"value\":1130"),
            ("\"success\":\"true\"", "\"success\":true"),
            ("\"success\":\"true\"", "\"success\":\"yes\""),
            ("\"CAPTURE\"", "\"CAPTURE\",\"eventCode\":\"REFUND\""),
        ] {
            assert_eq!(changed(&body(&[&item]), from, to).outcome(&Adyen), "signature_malformed", "{to}");
        }
    }

    #[test]
    fn a_new_outcome_is_a_new_fact_and_unsigned_fields_are_none() {
        let fact = |item: &str| {
            let event = event(&Adyen, &body(&[item]));
            (event.id, event.fact)
        };
        let first = fact(ITEM);
        assert_eq!(fact(&ITEM.replace("1111", "2222")), first, "reason");
        let failed = fact(&ITEM.replace("\"true\"", "\"false\""));
        assert_eq!(failed.0, first.0);
        assert_ne!(failed.1, first.1);
    }

    #[test]
    fn the_header_signs_the_body_of_a_newer_webhook() {
        assert_header_signs_body(&Adyen, SIGNATURE_HEADER, PLATFORM);
        assert_conventions(&Adyen, PLATFORM);
        assert_conventions(&Adyen, &body(&[ITEM]));
    }

    #[test]
    fn the_schemes_cannot_be_exchanged() {
        let item = Arriving::signed(&Adyen, &body(&[ITEM]));
        let signed = item.clone().verified(&Adyen).events[0].fact[0].clone();
        let as_body = Arriving { body: signed.into_bytes(), ..item.clone() };
        assert_eq!(as_body.outcome(&Adyen), "signature_missing");
        let mut as_body_with_header = as_body;
        let digest = hmac_sha256(&hex::decode(SECRET).unwrap(), &[&as_body_with_header.body]);
        as_body_with_header.headers.push((SIGNATURE_HEADER, encode_base64(&digest)));
        assert_eq!(as_body_with_header.outcome(&Adyen), "unreadable_body");

        let mut with_wrong_header = item;
        with_wrong_header.headers.push((SIGNATURE_HEADER, encode_base64(&digest)));
        assert_eq!(with_wrong_header.outcome(&Adyen), "signature_mismatch");
    }

    #[test]
    fn keys_are_hex() {
        let request = Arriving::signed(&Adyen, &body(&[ITEM]));
        for (secrets, expected) in [
            (vec![SECRET.to_uppercase()], "accept"),
            (vec!["not hex".to_owned(), SECRET.to_owned()], "accept"),
            (vec!["not hex".to_owned()], "no_secret"),
            (vec![SECRET[1..].to_owned()], "no_secret"),
        ] {
            let mut settings = settings(&Adyen);
            settings.secrets = Secrets::from_list(&secrets);
            assert_eq!(request.outcome_with(&Adyen, &settings), expected, "{secrets:?}");
        }
    }
}
