//! Mandrill (Mailchimp Transactional): several events in one field of a form, signed with the webhook's address.
//!
//! There is no SDK that verifies. The scheme is that of Mailchimp's page "Authenticating webhook requests": base64 of
//! HMAC-SHA1 over the URL and the form's fields sorted by name, keyed with the webhook's key.

use crate::{
    Answer, Context, Outgoing, Provider, ProviderOption, Rejection, Request, Settings, Verified,
    VerifiedEvent,
    body::{Fields, items, json_text},
    event::event_type_or_unknown,
    form::Form,
    signature::{decode_base64, encode_base64, hmac_sha1, require_match},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-mandrill-signature";

const NAME: &str = "mandrill";
const EVENT_METHOD: &str = "POST";
const PROBE_METHOD: &str = "HEAD";
const MEDIA_TYPE: &str = "application/x-www-form-urlencoded";
/// The field that holds the events.
const EVENTS: &str = "mandrill_events";
const ITEM_FIELDS: &[&str] = &["_id", "event", "type", "ts", "msg", "url", "ip"];
/// What makes another fact under one `_id`: a message is sent once, but opened and clicked as often as somebody likes.
const FACT_FIELDS: [&str; 4] = ["event", "ts", "url", "ip"];

/// The provider `mandrill`.
#[derive(Debug, Clone, Copy)]
pub struct Mandrill;

impl Provider for Mandrill {
    fn name(&self) -> &'static str {
        NAME
    }

    fn methods(&self) -> &'static [&'static str] {
        &[EVENT_METHOD, PROBE_METHOD]
    }

    fn options(&self) -> &'static [ProviderOption] {
        &[ProviderOption::URL]
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        _context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        if request.method == PROBE_METHOD {
            // A webhook whose requests could not be verified had better not be made.
            settings.require_secrets()?;
            return Ok(Verified::handshake(Answer::empty(200)));
        }
        request.require_method(EVENT_METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        settings.require_secrets()?;
        let signature = decode_base64(request.headers.signature(SIGNATURE_HEADER)?);
        let signature = signature.ok_or(Rejection::SignatureMalformed("not the base64 of 20 bytes"))?;
        let form = Form::read(request.body)?;
        let (url, fields) = (settings.signed_url(request), form.sorted_text());
        require_match(&settings.secrets, &[signature], |secret| {
            hmac_sha1(secret.expose().as_bytes(), &[url.as_bytes(), fields.as_bytes()])
        })?;
        let events = form.single(EVENTS)?.ok_or(Rejection::Unreadable("no mandrill_events"))?;
        Ok(Verified::new(items(json_text(events.as_bytes())?)?.into_iter().map(read_item).collect()))
    }
}

/// One item. Nothing in it is an error, because it must not hide the items beside it. Its text is copied: it was escaped in
/// the form.
fn read_item<'a>(item: &str) -> VerifiedEvent<'a> {
    let fields = Fields::read(item, ITEM_FIELDS).unwrap_or_default();
    let id = fields.short_text("_id");
    let text = |name| fields.raw(name).unwrap_or_default().to_owned();
    let kind = fields.lenient::<String>("event").or_else(|| fields.lenient("type"));
    VerifiedEvent {
        fact: if id.is_some() { FACT_FIELDS.map(text).to_vec() } else { Vec::new() },
        id,
        event_type: event_type_or_unknown(NAME, kind.as_deref()),
        occurred_at_unix_ms: fields.time_in_seconds("ts"),
        subject: fields.object("msg", &["_id"]).and_then(|message| message.short_text("_id")),
        payload: item.to_owned().into(),
        ..VerifiedEvent::default()
    }
}

/// Signs as Mandrill does, for a webhook whose URL is the request's. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let fields = Form::read(&request.body).map(|form| form.sorted_text()).unwrap_or_default();
    let digest = hmac_sha1(secret.as_bytes(), &[request.url.as_bytes(), fields.as_bytes()]);
    request.with_header(SIGNATURE_HEADER, encode_base64(&digest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, NOW, URL, flipped};

    const OPEN: &str =
        r#"{"event":"open","_id":"m1","ts":1767252596,"ip":"192.0.2.1","msg":{"_id":"m1","n":1.0}}"#;

    fn arriving(events: &str) -> Arriving {
        let body: String =
            [EVENTS, "=", &form_urlencoded::byte_serialize(events.as_bytes()).collect::<String>()].concat();
        Arriving::signed_at(&Mandrill, Outgoing::post(URL, MEDIA_TYPE, body), NOW)
    }

    fn events(items: &[&str]) -> Vec<VerifiedEvent<'static>> {
        arriving(&format!("[{}]", items.join(","))).verified(&Mandrill).events
    }

    #[test]
    fn several_items_are_several_events_and_a_bad_one_hides_none() {
        let events = events(&[OPEN, "7", r#"{"type":"blacklist","action":"add"}"#]);
        let shown: Vec<_> =
            events.iter().map(|event| (event.id.as_deref(), event.event_type.as_str())).collect();
        assert_eq!(
            shown,
            [(Some("m1"), "mandrill.open"), (None, "mandrill.unknown"), (None, "mandrill.blacklist")]
        );
        assert_eq!(
            (events[0].occurred_at_unix_ms, events[0].subject.as_deref()),
            (Some(1_767_252_596_000), Some("m1"))
        );
        assert_eq!(events[0].payload, OPEN);
    }

    #[test]
    fn every_open_of_a_message_is_a_fact_and_a_retry_is_none() {
        let identity = |item: &str| {
            let event = events(&[item]).remove(0);
            (event.id, event.fact)
        };
        let first = identity(OPEN);
        assert_eq!(identity(OPEN), first);
        assert_eq!(identity(&OPEN.replace("1.0", "2.0")), first, "what is told of the message may grow");
        for (from, to) in [
            ("open", "click"),
            ("1767252596", "1767252597"),
            ("192.0.2.1", "192.0.2.2"),
            ("\"m1\",\"ts", "\"m2\",\"ts"),
        ] {
            assert_ne!(identity(&OPEN.replace(from, to)), first, "{from}");
        }
    }

    #[test]
    fn the_probe_brings_no_event() {
        let probe = Arriving { method: "HEAD", url: URL.to_owned(), headers: vec![], body: vec![] };
        assert_eq!(probe.clone().verified(&Mandrill), Verified::handshake(Answer::empty(200)));
        let none = crate::Settings::new(&Mandrill, crate::Secrets::default());
        assert_eq!(probe.outcome_with(&Mandrill, &none), "no_secret");
    }

    #[test]
    fn url_fields_and_signature_count() {
        let good = arriving(&format!("[{OPEN}]"));
        assert_eq!(good.outcome(&Mandrill), "accept");
        let elsewhere = Arriving { url: format!("{URL}x"), ..good.clone() };
        assert_eq!(elsewhere.outcome(&Mandrill), "signature_mismatch");
        for (bit, body) in flipped(&good.body).enumerate() {
            let changed = Arriving { body, ..good.clone() };
            let outcome = changed.outcome(&Mandrill);
            let fields = |body: &[u8]| Form::read(body).map(|form| form.sorted_text()).ok();
            assert!(outcome != "accept" || fields(&changed.body) == fields(&good.body), "bit {bit}");
        }
        for (value, expected) in [("", "signature_malformed"), ("AA==", "signature_malformed")] {
            let mut changed = good.clone();
            changed.headers.retain(|(name, _)| *name != SIGNATURE_HEADER);
            changed.headers.push((SIGNATURE_HEADER, value.to_owned()));
            assert_eq!(changed.outcome(&Mandrill), expected, "{value}");
        }
    }

    #[test]
    fn signed_forms_that_hold_no_events_are_unreadable() {
        for body in [
            "",
            "a=b",
            "mandrill_events=",
            "mandrill_events=%7B%7D",
            "mandrill_events=%5B%5D&mandrill_events=%5B%5D",
        ] {
            let request = Arriving::signed_at(&Mandrill, Outgoing::post(URL, MEDIA_TYPE, body), NOW);
            assert_eq!(request.outcome(&Mandrill), "unreadable_body", "{body}");
        }
    }
}
