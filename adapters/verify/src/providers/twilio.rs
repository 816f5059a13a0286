//! Twilio: forms and queries signed with their address, JSON by its hash in the address.
//!
//! The scheme is that of twilio 6.3.1 for Node (`lib/webhooks/webhooks.js`): base64 of HMAC-SHA1 over the URL and, of a form,
//! its fields sorted by name. Nothing stands between names and values, so a signature does not tell where they meet; the
//! identity is made of the signed text for that reason.

use crate::{
    Answer, Context, Outgoing, Provider, ProviderOption, Rejection, Request, Settings, Verified,
    VerifiedEvent,
    body::{Fields, items, json_text},
    event::event_type_or_unknown,
    form::Form,
    signature::{
        any_equal, decode_base64, decode_hex_lower, encode_base64, hmac_sha1, hmac_sha256, require_match,
        sha256, sha256_hex,
    },
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-twilio-signature";
/// Header that names the algorithm, of webhooks with a shared key.
pub const SETTINGS_HEADER: &str = "x-twilio-webhooks-signature-settings";
/// Parameter of the query with the hash of a body that is no form.
pub const BODY_HASH: &str = "bodySHA256";

const NAME: &str = "twilio";
const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";
/// What a call or a message wants to hear; everything else does not mind.
const NOTHING_TO_SAY: &str = "<Response/>";

/// The id of what an event is about, the first that is there.
const ID_FIELDS: [&str; 5] = ["MessageSid", "SmsSid", "CallSid", "RecordingSid", "ConferenceSid"];
/// What has happened to it, the first that is there.
const TYPE_FIELDS: [&str; 6] =
    ["MessageStatus", "SmsStatus", "CallStatus", "RecordingStatus", "StatusCallbackEvent", "EventType"];
const ITEM_FIELDS: &[&str] = &["id", "type", "time"];

/// The provider `twilio`.
#[derive(Debug, Clone, Copy)]
pub struct Twilio;

impl Provider for Twilio {
    fn name(&self) -> &'static str {
        NAME
    }

    fn methods(&self) -> &'static [&'static str] {
        &["POST", "GET"]
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
        if request.method != "GET" {
            request.require_method("POST")?;
            request.require_media_type_among(&[FORM, JSON])?;
        }
        settings.require_secrets()?;
        // Whether a body counts by its fields or by its hash is told by the URL, which is signed, and not by its media type.
        let query = request.query()?;
        let hash = query.single(BODY_HASH).ok().flatten().filter(|_| request.method != "GET");
        let form = if request.method == "GET" || hash.is_some() {
            Form::default()
        } else {
            Form::read(request.body)?
        };
        let fields = form.sorted_text();
        verify_signature(request, settings, &fields)?;
        if let Some(hash) = hash {
            require_body(request.body, hash)?;
            return Ok(Verified::new(read_items(request.body)?).with_answer(Answer::empty(200)));
        }
        let event =
            if request.method == "GET" { read_form(&query, request.url) } else { read_form(&form, &fields) };
        Ok(Verified::new(vec![event]).with_answer(nothing_to_say()))
    }
}

fn verify_signature(request: &Request<'_>, settings: &Settings, fields: &str) -> Result<(), Rejection> {
    let signature = request.headers.signature(SIGNATURE_HEADER)?;
    let url = settings.signed_url(request);
    let urls = spellings(url);
    let check = |spelling: &str| {
        let signed = [spelling.as_bytes(), fields.as_bytes()];
        if is_sha256(request)? {
            let offered = decode_base64(signature)
                .ok_or(Rejection::SignatureMalformed("not the base64 of 32 bytes"))?;
            return require_match(&settings.secrets, &[offered], |secret| {
                hmac_sha256(secret.expose().as_bytes(), &signed)
            });
        }
        let offered =
            decode_base64(signature).ok_or(Rejection::SignatureMalformed("not the base64 of 20 bytes"))?;
        require_match(&settings.secrets, &[offered], |secret| hmac_sha1(secret.expose().as_bytes(), &signed))
    };
    let first = check(url);
    urls.iter().fold(first, |fits, spelling| {
        let also = check(spelling);
        fits.or(also)
    })
}

/// Whether the settings name HMAC-SHA256; without settings it is HMAC-SHA1. Whoever changes them still needs the key.
fn is_sha256(request: &Request<'_>) -> Result<bool, Rejection> {
    let unknown = Rejection::SignatureMalformed("the settings name no known algorithm");
    let Some(settings) = request.headers.single(SETTINGS_HEADER).map_err(|_| unknown)? else {
        return Ok(false);
    };
    let algorithm = settings.split(',').find_map(|setting| setting.trim().strip_prefix("algorithm="));
    match algorithm {
        Some("HMAC_SHA256") => Ok(true),
        Some("HMAC_SHA1") => Ok(false),
        _ => Err(unknown),
    }
}

/// How else Twilio may have written the URL that arrives as `url`: with the port or without it, and with `'` as it is, which
/// the runtime escapes in a query.
fn spellings(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("://") else { return Vec::new() };
    let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let other_port = match host.rsplit_once(':') {
        Some((name, _)) => name.to_owned(),
        None => [host, if scheme == "http" { ":80" } else { ":443" }].concat(),
    };
    let unescaped = path.replace("%27", "'");
    let mut spellings = vec![[scheme, "://", &other_port, path].concat()];
    if unescaped != path {
        spellings.push([scheme, "://", host, &unescaped].concat());
        spellings.push([scheme, "://", &other_port, &unescaped].concat());
    }
    spellings
}

fn require_body(body: &[u8], hash: &str) -> Result<(), Rejection> {
    let hash =
        decode_hex_lower(hash).ok_or(Rejection::SignatureMalformed("bodySHA256 is not lower-case hex"))?;
    if any_equal(&sha256(body), &[hash]) { Ok(()) } else { Err(Rejection::SignatureMismatch) }
}

/// The event of a form or of a query. Its id could be moved by whoever repeats a signed request, so the signed text is the
/// identity: the same fields are the same fact.
fn read_form<'a>(form: &Form<'_>, signed: &str) -> VerifiedEvent<'a> {
    let first = |names: &[&str]| names.iter().find_map(|name| form.short_text(name));
    let id = first(&ID_FIELDS);
    VerifiedEvent {
        subject: id.clone(),
        id,
        is_id_unsigned: true,
        fact: vec![sha256_hex(signed)],
        event_type: event_type_or_unknown(NAME, first(&TYPE_FIELDS).as_deref()),
        account: form.short_text("AccountSid"),
        payload: form.to_json().into(),
        ..VerifiedEvent::default()
    }
}

/// The events of a JSON body: one, or a list of them as Event Streams sends.
fn read_items(body: &[u8]) -> Result<Vec<VerifiedEvent<'_>>, Rejection> {
    let text = json_text(body)?;
    if text.starts_with('[') {
        return Ok(items(text)?.into_iter().map(read_item).collect());
    }
    Fields::read(text, ITEM_FIELDS)?;
    Ok(vec![read_item(text)])
}

fn read_item(item: &str) -> VerifiedEvent<'_> {
    let fields = Fields::read(item, ITEM_FIELDS).unwrap_or_default();
    VerifiedEvent {
        id: fields.short_text("id"),
        event_type: event_type_or_unknown(NAME, fields.lenient::<String>("type").as_deref()),
        occurred_at_unix_ms: fields.time_in_rfc3339("time"),
        payload: item.into(),
        ..VerifiedEvent::default()
    }
}

fn nothing_to_say() -> Answer {
    let headers = vec![("content-type", "text/xml".to_owned())];
    Answer { status: 200, headers, body: NOTHING_TO_SAY.to_owned() }
}

/// Signs as Twilio does: a form by its fields, any other body by its hash, which goes into the URL. No time is part of it.
#[must_use]
pub fn sign(mut request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let is_form =
        request.headers.iter().any(|(name, value)| *name == "content-type" && value.starts_with(FORM));
    let mut fields = String::new();
    if is_form {
        fields = Form::read(&request.body).map(|form| form.sorted_text()).unwrap_or_default();
    } else if request.method != "GET" {
        let separator = if request.url.contains('?') { "&" } else { "?" };
        request.url = [&request.url, separator, BODY_HASH, "=", &sha256_hex(&request.body)].concat();
    }
    let digest = hmac_sha1(secret.as_bytes(), &[request.url.as_bytes(), fields.as_bytes()]);
    request.with_header(SIGNATURE_HEADER, encode_base64(&digest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, NOW, SECRET, URL, flipped, settings};

    const DELIVERED: &str =
        "AccountSid=AC1&From=%2B1500&MessageSid=SM1&MessageStatus=delivered&To=%2B1501&Body=a+b&Empty=";

    fn form(body: &str) -> Arriving {
        Arriving::signed_at(&Twilio, Outgoing::post(URL, FORM, body), NOW)
    }

    fn identity(arriving: Arriving) -> (Option<String>, Vec<String>) {
        let event = arriving.verified(&Twilio).events.remove(0);
        (event.id.filter(|_| !event.is_id_unsigned), event.fact)
    }

    #[test]
    fn a_form_is_one_event() {
        let verified = form(DELIVERED).verified(&Twilio);
        let [event] = <[_; 1]>::try_from(verified.events).unwrap();
        assert_eq!((event.id.as_deref(), event.subject.as_deref()), (Some("SM1"), Some("SM1")));
        assert_eq!((event.event_type.as_str(), event.account.as_deref()), ("twilio.delivered", Some("AC1")));
        assert!(event.payload.contains(r#""Body":"a b""#) && event.payload.contains(r#""Empty":"""#));
        assert_eq!(verified.answer.unwrap().body, "<Response/>");
    }

    #[test]
    fn each_state_of_a_message_is_a_fact_and_a_retry_is_none() {
        let first = identity(form(DELIVERED));
        assert_eq!(identity(form(DELIVERED)), first);
        assert_ne!(identity(form(&DELIVERED.replace("delivered", "sent"))), first);
        assert_ne!(identity(form(&DELIVERED.replace("SM1", "SM2"))), first);
    }

    #[test]
    fn fields_whose_borders_were_moved_are_the_same_fact() {
        let genuine = form("MessageSid=SM1&MessageStatus=sent");
        let mut moved = genuine.clone();
        moved.body = b"Message=SidSM1&MessageStatus=sent".to_vec();
        assert_eq!(moved.outcome(&Twilio), "accept", "the scheme cannot tell");
        assert_eq!(identity(moved), identity(genuine));
    }

    #[test]
    fn a_call_may_come_as_a_query() {
        let get = Outgoing {
            method: "GET",
            ..Outgoing::post([URL, "&CallSid=CA1&CallStatus=ringing"].concat(), FORM, "")
        };
        let mut get = get;
        get.headers.clear();
        let arriving = Arriving::signed_at(&Twilio, get, NOW);
        let event = arriving.verified(&Twilio).events.remove(0);
        assert_eq!((event.id.as_deref(), event.event_type.as_str()), (Some("CA1"), "twilio.ringing"));
    }

    #[test]
    fn a_stream_brings_several_events_of_which_a_bad_one_hides_none() {
        let body = r#"[{"id":"EZ1","type":"com.twilio.a","time":"2026-01-01T00:00:00Z","n":1.0},7,{"id":"EZ2","type":"com.twilio.b"}]"#;
        let events = Arriving::signed(&Twilio, body).verified(&Twilio).events;
        let shown: Vec<_> =
            events.iter().map(|event| (event.id.as_deref(), event.event_type.as_str())).collect();
        assert_eq!(
            shown,
            [
                (Some("EZ1"), "twilio.com.twilio.a"),
                (None, "twilio.unknown"),
                (Some("EZ2"), "twilio.com.twilio.b")
            ]
        );
        assert_eq!(events[0].occurred_at_unix_ms, Some(1_767_225_600_000));
        assert!(events[0].payload.contains(r#""n":1.0"#));
    }

    #[test]
    fn every_bit_of_url_and_body_counts() {
        for good in [form(DELIVERED), Arriving::signed(&Twilio, r#"{"id":"EZ1","type":"a"}"#)] {
            assert_eq!(good.outcome(&Twilio), "accept");
            for (bit, body) in flipped(&good.body).enumerate() {
                let changed = Arriving { body, ..good.clone() };
                let outcome = changed.outcome(&Twilio);
                // Two spellings of one form are one form: `+` is a space, hex digits have two cases.
                let is_other_spelling = Form::read(&changed.body).map(|form| form.sorted_text())
                    == Form::read(&good.body).map(|form| form.sorted_text());
                assert!(outcome != "accept" || is_other_spelling, "bit {bit}: {outcome}");
            }
            let elsewhere = Arriving { url: good.url.replace("tenant=a", "tenant=b"), ..good.clone() };
            assert_eq!(elsewhere.outcome(&Twilio), "signature_mismatch");
        }
    }

    #[test]
    fn a_port_and_a_quote_may_be_written_in_two_ways() {
        for (signed, arrives) in [
            ("https://a.example:443/x?n=1", "https://a.example/x?n=1"),
            ("https://a.example/x", "https://a.example:8443/x"),
            ("https://a.example/x?n=O'Neil", "https://a.example/x?n=O%27Neil"),
        ] {
            let mut request = Arriving::signed_at(&Twilio, Outgoing::post(signed, FORM, "a=b"), NOW);
            request.url = arrives.to_owned();
            assert_eq!(request.outcome(&Twilio), "accept", "{signed} {arrives}");
        }
    }

    #[test]
    fn what_is_not_covered_is_refused() {
        let outcome = |url: &str, media_type: &str, body: &str| {
            let digest = hmac_sha1(SECRET.as_bytes(), &[url.as_bytes()]);
            let request =
                Outgoing::post(url, media_type, body).with_header(SIGNATURE_HEADER, encode_base64(&digest));
            Arriving {
                method: request.method,
                url: request.url,
                headers: request.headers,
                body: request.body,
            }
            .outcome(&Twilio)
        };
        assert_eq!(outcome("https://a.example/x", JSON, r#"{"id":"EZ1"}"#), "signature_mismatch");
        for hash in ["", "00", &sha256_hex("{}").to_uppercase()] {
            let url = ["https://a.example/x?bodySHA256=", hash].concat();
            assert_eq!(outcome(&url, JSON, "{}"), "signature_malformed", "{hash}");
        }
    }

    #[test]
    fn settings_choose_among_known_algorithms() {
        let good = form(DELIVERED);
        for (value, expected) in [
            ("key=k,algorithm=HMAC_SHA1", "accept"),
            ("key=k,algorithm=HMAC_SHA256", "signature_malformed"),
            ("key=k,algorithm=none", "signature_malformed"),
            ("key=k", "signature_malformed"),
            ("", "signature_malformed"),
        ] {
            let mut changed = good.clone();
            changed.headers.push((SETTINGS_HEADER, value.to_owned()));
            assert_eq!(changed.outcome(&Twilio), expected, "{value}");
        }
    }

    #[test]
    fn secrets_and_headers_are_strict() {
        let good = form(DELIVERED);
        let mut without = good.clone();
        without.headers.retain(|(name, _)| *name != SIGNATURE_HEADER);
        assert_eq!(without.outcome(&Twilio), "signature_missing");
        let mut none = settings(&Twilio);
        none.secrets = crate::Secrets::default();
        assert_eq!(good.outcome_with(&Twilio, &none), "no_secret");
        let put = Arriving { method: "PUT", ..good };
        assert_eq!(put.outcome(&Twilio), "method_not_allowed");
    }
}
