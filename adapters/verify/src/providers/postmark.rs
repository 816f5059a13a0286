//! Postmark: no signature, but a login in the webhook's address, which arrives as basic authorization.
//!
//! There is no SDK. Postmark's page on webhooks names basic authorization as the way to secure them; the secret is
//! `user:password`. Whoever has it can say anything, so it had better be long and random.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};

use crate::{
    Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    authorization::login,
    body::{Fields, json_text},
    event::event_type_or_unknown,
    signature::require_equal,
};

const NAME: &str = "postmark";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
/// When it happened, whatever it was.
const TIME_FIELDS: [&str; 5] = ["DeliveredAt", "BouncedAt", "ReceivedAt", "ChangedAt", "Date"];
/// What makes another fact under one `MessageID`: a message goes to several people, and is opened and clicked many times.
const FACT_FIELDS: [&str; 9] = [
    "RecordType",
    "ID",
    "Recipient",
    "Email",
    "DeliveredAt",
    "BouncedAt",
    "ReceivedAt",
    "ChangedAt",
    "OriginalLink",
];
const EVENT_FIELDS: &[&str] = &[
    "RecordType",
    "ID",
    "MessageID",
    "ServerID",
    "Recipient",
    "Email",
    "OriginalLink",
    "OriginalRecipient",
    "DeliveredAt",
    "BouncedAt",
    "ReceivedAt",
    "ChangedAt",
    "Date",
];

/// The provider `postmark`.
#[derive(Debug, Clone, Copy)]
pub struct Postmark;

impl Provider for Postmark {
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
        settings.require_secrets()?;
        require_equal(&settings.secrets, &login(request)?)?;
        Ok(Verified::new(vec![read_event(json_text(request.body)?)?]))
    }
}

fn read_event(payload: &str) -> Result<VerifiedEvent<'_>, Rejection> {
    let fields = Fields::read(payload, EVENT_FIELDS)?;
    let id = fields.id("MessageID")?;
    let text = |name: &str| fields.raw(name).unwrap_or_default().to_owned();

    // A mail that came in says nothing of its kind.
    let is_inbound = fields.raw("OriginalRecipient").is_some();
    let kind = fields.lenient::<String>("RecordType").or_else(|| is_inbound.then(|| "Inbound".to_owned()));
    Ok(VerifiedEvent {
        fact: if id.is_some() { FACT_FIELDS.map(text).to_vec() } else { Vec::new() },
        subject: id.clone(),
        id,
        event_type: event_type_or_unknown(NAME, kind.as_deref()),
        occurred_at_unix_ms: TIME_FIELDS.iter().find_map(|name| fields.time_in_rfc3339(name)),
        account: fields.text_or_number("ServerID"),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

/// Adds the login, which is all that there is. The time is not part of it.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    request.with_header("authorization", ["Basic ", &BASE64.encode(secret)].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, NOW, URL};
    use crate::{Secrets, Settings};

    const LOGIN: &str = "hooks:a long password";
    const BOUNCE: &str = r#"{"RecordType":"Bounce","ID":4323372036854776000,"MessageID":"m1","Email":"a@example.com",
        "BouncedAt":"2026-01-01T00:00:00Z","ServerID":23}"#;

    fn settings() -> Settings {
        Settings::new(&Postmark, Secrets::from_list([LOGIN]))
    }

    fn arriving(body: &str) -> Arriving {
        let request = sign(Outgoing::post(URL, MEDIA_TYPE, body), LOGIN, NOW);
        Arriving { method: request.method, url: request.url, headers: request.headers, body: request.body }
    }

    #[test]
    fn an_event_is_read_in_full() {
        let event = read_event(BOUNCE).unwrap();
        assert_eq!((event.id.as_deref(), event.event_type.as_str()), (Some("m1"), "postmark.bounce"));
        assert_eq!(
            (event.occurred_at_unix_ms, event.account.as_deref()),
            (Some(1_767_225_600_000), Some("23"))
        );
        assert_eq!(event.payload, BOUNCE);
        let inbound = read_event(r#"{"MessageID":"m2","OriginalRecipient":"x@example.com"}"#).unwrap();
        assert_eq!(inbound.event_type, "postmark.inbound");
    }

    #[test]
    fn every_record_of_a_message_is_a_fact_and_a_retry_is_none() {
        let identity = |body: &str| {
            let event = read_event(body).unwrap();
            (event.id, event.fact)
        };
        let first = identity(BOUNCE);
        assert_eq!(identity(BOUNCE), first);
        for (from, to) in [
            ("Bounce\"", "SpamComplaint\""),
            ("6000", "6001"),
            ("a@", "b@"),
            ("00:00Z", "00:01Z"),
            ("m1", "m2"),
        ] {
            assert_ne!(identity(&BOUNCE.replace(from, to)), first, "{from}");
        }
    }

    #[test]
    fn only_the_login_opens() {
        let with = |value: &str| {
            let mut changed = arriving(BOUNCE);
            changed.headers.retain(|(name, _)| *name != "authorization");
            changed.headers.push(("authorization", value.to_owned()));
            changed.outcome_with(&Postmark, &settings())
        };
        let basic = |login: &str| with(&["Basic ", &BASE64.encode(login)].concat());
        assert_eq!(arriving(BOUNCE).outcome_with(&Postmark, &settings()), "accept");
        assert_eq!(with(&["bAsIc  ", &BASE64.encode(LOGIN)].concat()), "accept");
        for wrong in [
            "hooks:",
            ":a long password",
            "hooks:a long passwore",
            "Hooks:a long password",
            "hooks:a long password\n",
        ] {
            assert_eq!(basic(wrong), "signature_mismatch", "{wrong}");
        }
        for wrong in ["", "Basic", "Basic ", "Basic aG9va3M=", "Basic %", "Bearer x", &BASE64.encode(LOGIN)] {
            assert_eq!(with(wrong), "signature_malformed", "{wrong}");
        }
        let mut without = arriving(BOUNCE);
        without.headers.retain(|(name, _)| *name != "authorization");
        assert_eq!(without.outcome_with(&Postmark, &settings()), "signature_missing");
        let none = Settings::new(&Postmark, Secrets::default());
        assert_eq!(arriving(BOUNCE).outcome_with(&Postmark, &none), "no_secret");
    }

    #[test]
    fn bodies_that_are_no_events_are_unreadable() {
        for body in ["", "[]", "7", r#"{"MessageID":""}"#, r#"{"MessageID":"a","MessageID":"b"}"#] {
            assert_eq!(arriving(body).outcome_with(&Postmark, &settings()), "unreadable_body", "{body}");
        }
    }
}
