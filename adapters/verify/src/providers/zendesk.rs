//! Zendesk: one HMAC-SHA256 over the time and the body; webhooks that are subscribed to events, and those that triggers and
//! automations call with a body of their user's own form.
//!
//! The scheme is the one of developer.zendesk.com/documentation/webhooks/verifying, which third parties implement alike;
//! there is no SDK that verifies. The fields are those of developer.zendesk.com/api-reference/webhooks/event-types.

use time::OffsetDateTime;

use crate::{
    Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{event_type_or_unknown, unix_ms_from_rfc3339},
    signature::{
        decode_base64, encode_base64, hmac_sha256, require_fresh_ms, require_hmac_header, sha256_hex,
    },
};

/// Header that carries the signature, in base64.
pub const SIGNATURE_HEADER: &str = "x-zendesk-webhook-signature";
/// Header that carries the signed time, as RFC 3339 text.
pub const TIMESTAMP_HEADER: &str = "x-zendesk-webhook-signature-timestamp";
/// How the type of an event begins to which a webhook can be subscribed. Such an event has an id.
pub const EVENT_TYPE_PREFIX: &str = "zen:event-type:";

const NAME: &str = "zendesk";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const EVENT_FIELDS: &[&str] = &["account_id", "id", "subject", "time", "type", "zendesk_event_version"];

/// The provider `zendesk`.
#[derive(Debug, Clone, Copy)]
pub struct Zendesk;

impl Provider for Zendesk {
    fn name(&self) -> &'static str {
        NAME
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method(METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        let timestamp = verify_signature(request, settings, context.now_unix)?;
        Ok(Verified::new(vec![read_event(timestamp, request.body)?]))
    }
}

/// Returns the signed time as it came.
fn verify_signature<'a>(
    request: &Request<'a>,
    settings: &Settings,
    now_unix: i64,
) -> Result<&'a str, Rejection> {
    settings.require_secrets()?;
    let timestamp = request.headers.signature(TIMESTAMP_HEADER)?;
    let signed_unix_ms = unix_ms_from_rfc3339(timestamp)
        .ok_or(Rejection::SignatureMalformed("the timestamp is not a time by RFC 3339"))?;
    let signed = [timestamp.as_bytes(), request.body];
    require_hmac_header(request, &settings.secrets, SIGNATURE_HEADER, decode_base64, &signed)?;
    require_fresh_ms(signed_unix_ms, now_unix, settings.tolerance_seconds)?;
    Ok(timestamp)
}

/// Signs as Zendesk does.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, now_unix: i64) -> Outgoing {
    let timestamp = timestamp_text(now_unix);
    let digest = hmac_sha256(secret.as_bytes(), &[timestamp.as_bytes(), &request.body]);
    request.with_header(TIMESTAMP_HEADER, timestamp).with_header(SIGNATURE_HEADER, encode_base64(&digest))
}

fn timestamp_text(unix: i64) -> String {
    let time = OffsetDateTime::from_unix_timestamp(unix).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (year, month, day) = time.to_calendar_date();
    let (hour, minute, second) = time.to_hms();
    format!("{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z", u8::from(month))
}

/// Reads the event of a body, which is Zendesk's own if its type says so. Any other one is of the form that the user gave
/// it for a trigger or automation: its `id` may be that of a ticket, which stands for many facts, and its `subject` may be a
/// line of text, so nothing of it is read but a type.
fn read_event<'a>(timestamp: &str, body: &'a [u8]) -> Result<VerifiedEvent<'a>, Rejection> {
    let payload = json_text(body)?;
    let fields = Fields::read(payload, EVENT_FIELDS)?;
    let zendesk_type: Option<String> = fields.lenient("type");
    let event = VerifiedEvent {
        event_type: event_type_or_unknown(NAME, zendesk_type.as_deref()),
        payload: payload.into(),
        ..VerifiedEvent::default()
    };
    let is_own = zendesk_type.is_some_and(|zendesk_type| zendesk_type.starts_with(EVENT_TYPE_PREFIX));
    let id = if is_own { fields.id("id")? } else { None };
    // The header with an id of the call is not signed, so it is no part of the identity.
    let fact = if id.is_some() { Vec::new() } else { vec![timestamp.to_owned(), sha256_hex(body)] };
    if !is_own {
        return Ok(VerifiedEvent { fact, ..event });
    }
    Ok(VerifiedEvent {
        id,
        fact,
        occurred_at_unix_ms: fields.lenient::<String>("time").as_deref().and_then(unix_ms_from_rfc3339),
        account: account(&fields),
        subject: fields.short_text("subject"),
        version: fields.short_text("zendesk_event_version"),
        ..event
    })
}

/// A number in events, taken as text.
fn account(fields: &Fields<'_>) -> Option<String> {
    let number = fields.lenient::<u64>("account_id").map(|number| number.to_string());
    number.or_else(|| fields.short_text("account_id"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, NOW, assert_conventions, event, outcome};

    const OWN: &str = r#"{"account_id":123456,"detail":{"id":"65"},"event":{},"id":"36ad8a70-647e","subject":"zen:user:65",
        "time":"2026-01-01T00:00:00Z","type":"zen:event-type:user.created","zendesk_event_version":"2022-06-20"}"#;
    const TRIGGER: &str = r#"{"id":"35436","subject":"Help","status":"open","account_id":"acme"}"#;

    fn attempt(body: &str, signed_unix: i64) -> VerifiedEvent<'static> {
        let request = Outgoing::post("", MEDIA_TYPE, body);
        let verified = Arriving::signed_at(&Zendesk, request, signed_unix).verified(&Zendesk);
        let [event] = <[_; 1]>::try_from(verified.events).unwrap();
        event
    }

    #[test]
    fn what_fields_of_an_event_become() {
        let event = event(&Zendesk, OWN);
        assert_eq!(event.id.as_deref(), Some("36ad8a70-647e"));
        assert_eq!(event.event_type, "zendesk.zen_event-type_user.created");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_225_600_000));
        assert_eq!(event.account.as_deref(), Some("123456"));
        assert_eq!(event.subject.as_deref(), Some("zen:user:65"));
        assert_eq!(event.version.as_deref(), Some("2022-06-20"));
        assert_eq!((event.fact, event.payload.as_ref()), (vec![], OWN));
    }

    #[test]
    fn a_body_of_a_trigger_is_the_users_own() {
        let event = event(&Zendesk, TRIGGER);
        assert_eq!((event.id, event.account, event.subject), (None, None, None));
        assert_eq!((event.event_type.as_str(), event.payload.as_ref()), ("zendesk.unknown", TRIGGER));
        let typed = attempt(r#"{"type":"ticket.solved"}"#, NOW);
        assert_eq!(typed.event_type, "zendesk.ticket.solved");
    }

    #[test]
    fn a_retry_is_the_same_fact_and_another_event_is_not() {
        let identity = |event: VerifiedEvent<'_>| (event.id, event.fact);
        // Zendesk's own events have an id; everything else about the attempt may change.
        assert_eq!(identity(attempt(OWN, NOW - 200)), identity(attempt(OWN, NOW)));
        assert_ne!(identity(attempt(OWN, NOW)), identity(attempt(&OWN.replace("36ad", "36ae"), NOW)));
        // The same ticket twice, and the same text at another time, are two facts.
        assert_eq!(identity(attempt(TRIGGER, NOW)), identity(attempt(TRIGGER, NOW)));
        assert_ne!(
            identity(attempt(TRIGGER, NOW)),
            identity(attempt(&TRIGGER.replace("open", "solved"), NOW))
        );
        assert_ne!(identity(attempt(TRIGGER, NOW)), identity(attempt(TRIGGER, NOW - 60)));
    }

    #[test]
    fn a_header_that_is_not_signed_makes_no_other_fact() {
        let identity = |invocation: &str| {
            let request = Outgoing::post("", MEDIA_TYPE, TRIGGER);
            let request = request.with_header("x-zendesk-webhook-invocation-id", invocation);
            let verified = Arriving::signed_at(&Zendesk, request, NOW).verified(&Zendesk);
            verified.events.into_iter().map(|event| (event.id, event.fact)).collect::<Vec<_>>()
        };
        assert_eq!(identity("A"), identity("B"));
    }

    #[test]
    fn every_bit_of_the_body_and_of_the_time_counts() {
        let good = Arriving::signed(&Zendesk, OWN);
        assert_eq!(good.outcome(&Zendesk), "accept");
        for bit in 0..OWN.len() * 8 {
            let mut changed = good.clone();
            changed.body[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(changed.outcome(&Zendesk), "signature_mismatch", "bit {bit}");
        }
        let with = |name: &'static str, values: &[&str]| {
            let mut changed = good.clone();
            changed.headers.retain(|(header, _)| *header != name);
            changed.headers.extend(values.iter().map(|value| (name, (*value).to_owned())));
            changed.outcome(&Zendesk)
        };
        let time = timestamp_text(NOW);
        assert_eq!(time, "2026-01-01T03:25:45Z");
        for (values, expected) in [
            (vec!["2026-01-01T03:25:46Z"], "signature_mismatch"),
            (vec!["2026-01-01T03:25:45.0Z"], "signature_mismatch"),
            (vec!["2026-01-01T03:25:45z"], "signature_mismatch"),
            (vec!["1767237945"], "signature_malformed"),
            (vec![""], "signature_malformed"),
            (vec![], "signature_missing"),
            (vec![&time, &time], "signature_malformed"),
        ] {
            assert_eq!(with(TIMESTAMP_HEADER, &values), expected, "{values:?}");
        }
        for (values, expected) in [
            (vec![""], "signature_malformed"),
            (vec!["sha256="], "signature_malformed"),
            (vec![], "signature_missing"),
        ] {
            assert_eq!(with(SIGNATURE_HEADER, &values), expected, "{values:?}");
        }
    }

    #[test]
    fn five_minutes_are_tolerated_either_way() {
        for (age, expected) in
            [(300, "accept"), (301, "signature_stale"), (-300, "accept"), (-301, "signature_stale")]
        {
            let request = Outgoing::post("", MEDIA_TYPE, OWN);
            let outcome = Arriving::signed_at(&Zendesk, request, NOW - age).outcome(&Zendesk);
            assert_eq!(outcome, expected, "{age} s");
        }
    }

    #[test]
    fn what_is_not_an_event_is_refused() {
        let bodies = ["", "[]", "hello", r#"{"type":"zen:event-type:a","id":7}"#, r#"{"id":"a","id":"b"}"#];
        for body in bodies {
            assert_eq!(outcome(&Zendesk, body), "unreadable_body", "{body}");
        }
    }

    #[test]
    fn conventions_are_kept() {
        assert_conventions(&Zendesk, OWN);
    }
}
