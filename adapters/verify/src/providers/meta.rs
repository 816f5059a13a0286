//! Meta: WhatsApp, Messenger, Instagram and pages, many items in one body, and the challenge before a webhook is made.
//!
//! There is no SDK that verifies. The scheme is that of Meta's webhook guide: `sha256=` and the hex of HMAC-SHA256 over the
//! body as it was sent, keyed with the app's secret. The older header with SHA-1 never counts.

use crate::{
    Answer, Context, Outgoing, Provider, ProviderOption, Rejection, Request, Secrets, Settings, Verified,
    VerifiedEvent,
    body::{Fields, json_text, members, with_members},
    event::{checked_unix_ms, event_type_or_unknown, is_short_text, unix_ms_from_seconds},
    signature::{decode_hub_signature, hub_signature, require_equal, require_hmac_header, sha256_hex},
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-hub-signature-256";

const NAME: &str = "meta";
const EVENT_METHOD: &str = "POST";
const CHALLENGE_METHOD: &str = "GET";
const MEDIA_TYPE: &str = "application/json";
const ENTRY_FIELDS: &[&str] = &["id", "time", "changes", "messaging", "standby"];
const CHANGE_FIELDS: &[&str] = &["field", "value"];
const VALUE_FIELDS: &[&str] = &["messages", "statuses"];
const ITEM_FIELDS: &[&str] =
    &["id", "status", "timestamp", "from", "recipient_id", "sender", "recipient", "message"];
/// What every item of a conversation has beside the field that says what it is.
const COMMON_FIELDS: [&str; 3] = ["sender", "recipient", "timestamp"];
/// Counts of time that are larger are milliseconds: Meta uses both units under one name.
const SECONDS_MAX: i64 = 100_000_000_000;

/// The provider `meta`.
#[derive(Debug, Clone, Copy)]
pub struct Meta;

impl Provider for Meta {
    fn name(&self) -> &'static str {
        NAME
    }

    fn methods(&self) -> &'static [&'static str] {
        &[EVENT_METHOD, CHALLENGE_METHOD]
    }

    fn options(&self) -> &'static [ProviderOption] {
        &[ProviderOption {
            name: "verify_token",
            is_required: false,
            help: "the token that was entered with the webhook's address; without it no webhook can be made",
        }]
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        _context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        if request.method == CHALLENGE_METHOD {
            return answer_challenge(request, settings);
        }
        request.require_method(EVENT_METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        let signed = [request.body];
        require_hmac_header(request, &settings.secrets, SIGNATURE_HEADER, decode_hub_signature, &signed)?;
        let body = json_text(request.body)?;
        let mut events = Vec::new();
        for entry in Fields::read(body, &["entry"])?.items("entry")? {
            read_entry(body, entry, &mut events);
        }
        Ok(Verified::new(events))
    }
}

/// The challenge goes back to whoever knows the token.
fn answer_challenge<'a>(request: &Request<'_>, settings: &Settings) -> Result<Verified<'a>, Rejection> {
    settings.require_secrets()?;
    let query = request.query()?;
    let field = |name| query.single(name).ok().flatten().ok_or(Rejection::HandshakeRefused);
    let token = Secrets::from_list(settings.option("verify_token"));
    require_equal(&token, field("hub.verify_token")?).map_err(|_| Rejection::HandshakeRefused)?;
    let challenge = field("hub.challenge")?;
    if field("hub.mode")? != "subscribe" || !is_short_text(challenge) {
        return Err(Rejection::HandshakeRefused);
    }
    Ok(Verified::handshake(Answer::text(challenge)))
}

/// One place in a body: which item, and how to write a body that holds nothing else.
struct Place<'a> {
    body: &'a str,
    entry: &'a str,
    fields: Fields<'a>,
}

/// Reads one entry. What cannot be read is unknown, so that it does not hide the others.
fn read_entry<'a>(body: &'a str, entry: &'a str, events: &mut Vec<VerifiedEvent<'a>>) {
    let place = Place { body, entry, fields: Fields::read(entry, ENTRY_FIELDS).unwrap_or_default() };
    let before = events.len();
    for change in place.fields.items("changes").unwrap_or_default() {
        place.read_change(change, events);
    }
    for list in ["messaging", "standby"] {
        for item in place.fields.items(list).unwrap_or_default() {
            events.push(place.conversation(list, item));
        }
    }
    if events.len() == before {
        let object = Fields::read(body, &["object"]).unwrap_or_default().lenient::<String>("object");
        events.push(place.event(object.as_deref(), entry, None, place.payload_of_entry(entry)));
    }
}

impl<'a> Place<'a> {
    /// A change is one event, unless it holds messages and states of messages, each of which is one.
    fn read_change(&self, change: &'a str, events: &mut Vec<VerifiedEvent<'a>>) {
        let fields = Fields::read(change, CHANGE_FIELDS).unwrap_or_default();
        let kind: Option<String> = fields.lenient("field");
        let value = fields.raw("value").unwrap_or_default();
        let lists = Fields::read(value, VALUE_FIELDS).unwrap_or_default();
        let before = events.len();
        for (list, other) in [("messages", "statuses"), ("statuses", "messages")] {
            for item in lists.items(list).unwrap_or_default() {
                let alone = ["[", item, "]"].concat();
                let value = with_members(value, &[(list, Some(&alone)), (other, None)]);
                let change = value.and_then(|value| with_members(change, &[("value", Some(&value))]));
                let payload = change.and_then(|change| self.payload("changes", &change));
                events.push(self.event(kind.as_deref(), item, Some(list), payload));
            }
        }
        if events.len() == before {
            events.push(self.event(kind.as_deref(), change, None, self.payload("changes", change)));
        }
    }

    /// An item of Messenger or Instagram, of the kind that its own field names.
    fn conversation(&self, list: &str, item: &'a str) -> VerifiedEvent<'a> {
        let names = members(item).unwrap_or_default().into_iter().map(|(name, _)| name);
        let kind = names.into_iter().find(|name| !COMMON_FIELDS.contains(&name.as_str()));
        self.event(kind.as_deref(), item, Some(list), self.payload(list, item))
    }

    /// An event. A message has its id, under which its states come as well; whatever has no id is known by its text.
    fn event(
        &self,
        kind: Option<&str>,
        item: &str,
        list: Option<&str>,
        payload: Result<String, Rejection>,
    ) -> VerifiedEvent<'a> {
        let fields = list.and_then(|_| Fields::read(item, ITEM_FIELDS).ok()).unwrap_or_default();
        let id = fields.short_text("id").or_else(|| fields.object("message", &["mid"])?.short_text("mid"));
        let mut fact = vec![list.unwrap_or_default().to_owned()];
        match &id {
            Some(_) => fact
                .extend(["status", "recipient"].map(|name| fields.raw(name).unwrap_or_default().to_owned())),
            None => fact.extend([self.fields.raw("id").unwrap_or_default().to_owned(), sha256_hex(item)]),
        }
        let sender = fields.object("sender", &["id"]).and_then(|sender| sender.text_or_number("id"));
        VerifiedEvent {
            id,
            fact,
            event_type: event_type_or_unknown(NAME, kind),
            occurred_at_unix_ms: time(&fields, "timestamp").or_else(|| time(&self.fields, "time")),
            account: self.fields.text_or_number("id"),
            subject: fields.short_text("from").or_else(|| fields.short_text("recipient_id")).or(sender),
            payload: payload.unwrap_or_else(|_| self.body.to_owned()).into(),
            ..VerifiedEvent::default()
        }
    }

    /// A body of the form that Meta sends, with this one item in this one entry.
    fn payload(&self, list: &str, item: &str) -> Result<String, Rejection> {
        let alone = ["[", item, "]"].concat();
        let mut replacements = ["changes", "messaging", "standby"].map(|name| (name, None));
        for replacement in replacements.iter_mut().filter(|(name, _)| *name == list) {
            replacement.1 = Some(alone.as_str());
        }
        self.payload_of_entry(&with_members(self.entry, &replacements)?)
    }

    fn payload_of_entry(&self, entry: &str) -> Result<String, Rejection> {
        with_members(self.body, &[("entry", Some(&["[", entry, "]"].concat()))])
    }
}

fn time(fields: &Fields<'_>, name: &str) -> Option<i64> {
    let count: i64 = fields.text_or_number(name)?.parse().ok()?;
    if count < SECONDS_MAX { unix_ms_from_seconds(count) } else { checked_unix_ms(count) }
}

/// Signs as Meta does. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let signature = hub_signature(secret, &request.body);
    request.with_header(SIGNATURE_HEADER, signature)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, assert_header_signs_body, event, events, outcome, settings};

    const STATUS: &str = r#"{"object":"whatsapp_business_account","entry":[{"id":"39","changes":[{"value":{"metadata":{"n":1.0},
        "statuses":[{"id":"wamid.1","status":"sent","timestamp":"1767235708","recipient_id":"1555"}]},"field":"messages"}]}]}"#;

    fn shown<'a>(events: &'a [VerifiedEvent<'_>]) -> Vec<(Option<&'a str>, &'a str)> {
        events.iter().map(|event| (event.id.as_deref(), event.event_type.as_str())).collect()
    }

    #[test]
    fn a_state_of_a_message_is_read_in_full() {
        let event = event(&Meta, STATUS);
        assert_eq!((event.id.as_deref(), event.event_type.as_str()), (Some("wamid.1"), "meta.messages"));
        assert_eq!((event.account.as_deref(), event.subject.as_deref()), (Some("39"), Some("1555")));
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_235_708_000));
        assert!(event.payload.contains(r#""metadata":{"n":1.0}"#), "{}", event.payload);
    }

    #[test]
    fn every_item_is_an_event_with_a_payload_of_its_own() {
        let body = r#"{"object":"x","entry":[
            {"id":"1","changes":[{"field":"messages","value":{"m":1.0,"messages":[{"id":"a","from":"7"},{"id":"b"}],"statuses":[{"id":"c","status":"read"}]}},
                                 {"field":"feed","value":{"item":"like"}},7]},
            {"id":"2","time":1767235708000,"messaging":[{"sender":{"id":"5"},"recipient":{"id":"6"},"message":{"mid":"m_1"}},
                                                        {"sender":{"id":"5"},"recipient":{"id":"6"},"read":{"watermark":1}}]},
            {"id":"3","changed_fields":["photo"]},"odd"]}"#;
        let events = events(&Meta, body);
        assert_eq!(
            shown(&events),
            [
                (Some("a"), "meta.messages"),
                (Some("b"), "meta.messages"),
                (Some("c"), "meta.messages"),
                (None, "meta.feed"),
                (None, "meta.unknown"),
                (Some("m_1"), "meta.message"),
                (None, "meta.read"),
                (None, "meta.x"),
                (None, "meta.x"),
            ]
        );
        let expected = r#"{"object":"x","entry":[{"id":"1","changes":[{"field":"messages","value":{"m":1.0,"messages":[{"id":"b"}]}}]}]}"#;
        assert_eq!(events[1].payload, expected);
        assert_eq!(events[5].occurred_at_unix_ms, Some(1_767_235_708_000));
        assert_eq!(events[5].subject.as_deref(), Some("5"));
        for event in &events {
            assert!(serde_json::from_str::<serde_json::Value>(&event.payload).is_ok(), "{}", event.payload);
        }
    }

    #[test]
    fn states_of_a_message_are_facts_and_retries_are_none() {
        let identity = |body: &str| {
            let event = event(&Meta, body);
            (event.id, event.fact)
        };
        let first = identity(STATUS);
        assert_eq!(identity(STATUS), first);
        for (from, to) in [("sent", "delivered"), ("wamid.1", "wamid.2"), ("statuses", "messages")] {
            assert_ne!(identity(&STATUS.replace(from, to)), first, "{from}");
        }
        let feed =
            r#"{"object":"page","entry":[{"id":"1","time":1,"changes":[{"field":"feed","value":{"n":1}}]}]}"#;
        assert_eq!(
            identity(&feed.replace("\"time\":1", "\"time\":2")),
            identity(feed),
            "the time of sending is no fact"
        );
        assert_ne!(identity(&feed.replace("\"n\":1", "\"n\":2")), identity(feed));
        assert_ne!(identity(&feed.replace("\"id\":\"1\"", "\"id\":\"2\"")), identity(feed));
    }

    fn challenge(query: &str, token: Option<&str>) -> Result<String, &'static str> {
        let url = format!("https://hooks.example.com/webhook/meta?{query}");
        let headers = crate::Headers::default();
        let request = Request { method: "GET", url: &url, headers: &headers, body: b"" };
        let mut settings = settings(&Meta);
        if let Some(token) = token {
            settings = settings.with_option("verify_token", token);
        }
        let verified = Meta.verify(&request, &settings, &Context::at(0));
        verified.map(|verified| verified.answer.unwrap().body).map_err(|rejection| rejection.reason())
    }

    #[test]
    fn the_challenge_goes_to_who_knows_the_token() {
        let good = "hub.mode=subscribe&hub.verify_token=t0&hub.challenge=1158201444";
        assert_eq!(challenge(good, Some("t0")).as_deref(), Ok("1158201444"));
        for (query, token) in [
            (good, None),
            (good, Some("")),
            (good, Some("t1")),
            ("hub.mode=subscribe&hub.verify_token=&hub.challenge=1", Some("t0")),
            ("hub.mode=subscribe&hub.challenge=1", Some("t0")),
            ("hub.mode=unsubscribe&hub.verify_token=t0&hub.challenge=1", Some("t0")),
            ("hub.mode=subscribe&hub.verify_token=t0&hub.challenge=a%20b", Some("t0")),
            ("hub.mode=subscribe&hub.verify_token=t0&hub.verify_token=t0&hub.challenge=1", Some("t0")),
            ("hub.mode=subscribe&hub.verify_token=t0", Some("t0")),
        ] {
            assert_eq!(challenge(query, token), Err("handshake_refused"), "{query} {token:?}");
        }
    }

    #[test]
    fn the_signature_is_strict_and_covers_the_body() {
        assert_header_signs_body(&Meta, SIGNATURE_HEADER, STATUS);
        let good = Arriving::signed(&Meta, STATUS);
        assert_eq!(Arriving { method: "PUT", ..good }.outcome(&Meta), "method_not_allowed");
    }

    #[test]
    fn signed_bodies_that_are_no_events_are_unreadable() {
        for body in ["", "[]", "{}", r#"{"entry":{}}"#, r#"{"entry":[],"entry":[]}"#] {
            assert_eq!(outcome(&Meta, body), "unreadable_body", "{body}");
        }
        assert!(events(&Meta, r#"{"object":"page","entry":[]}"#).is_empty());
    }
}
