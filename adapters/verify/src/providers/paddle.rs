//! Paddle Billing: the `Paddle-Signature` header and the events of a notification destination.
//!
//! The scheme is that of @paddle/paddle-node-sdk 3.10.0 (`notifications/helpers/webhooks-validator.js`) and
//! paddle-python-sdk 1.16.1, which differ where a secret is being rotated: the first looks at the last `h1` only, here any
//! may match. Paddle Classic (`p_signature`) is another scheme and not understood.

use crate::{
    Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{required_event_type, unix_ms_from_rfc3339},
    timed::TimedHeader,
};

/// The signature header, `ts=<unix>;h1=<hex>`.
pub const SIGNATURE: TimedHeader = TimedHeader {
    name: "paddle-signature",
    separator: ';',
    timestamp_key: "ts",
    signature_key: "h1",
    joint: ":",
};
/// What both SDKs tolerate.
pub const TOLERANCE_SECONDS: u64 = 5;

const NAME: &str = "paddle";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const EVENT_FIELDS: &[&str] = &["event_id", "event_type", "occurred_at", "data"];

/// The provider `paddle`.
#[derive(Debug, Clone, Copy)]
pub struct Paddle;

impl Provider for Paddle {
    fn name(&self) -> &'static str {
        NAME
    }

    fn default_tolerance_seconds(&self) -> u64 {
        TOLERANCE_SECONDS
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method(METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        SIGNATURE.require(request, settings, context.now_unix)?;
        Ok(Verified::new(vec![read_event(request.body)?]))
    }
}

/// Signs as Paddle does, with one `h1`.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, now_unix: i64) -> Outgoing {
    SIGNATURE.sign(request, secret, now_unix)
}

fn read_event(body: &[u8]) -> Result<VerifiedEvent<'_>, Rejection> {
    let payload = json_text(body)?;
    let fields = Fields::read(payload, EVENT_FIELDS)?;
    Ok(VerifiedEvent {
        id: fields.id("event_id")?,
        event_type: required_event_type(NAME, &fields, "event_type")?,
        occurred_at_unix_ms: fields
            .lenient::<String>("occurred_at")
            .as_deref()
            .and_then(unix_ms_from_rfc3339),
        subject: fields.object("data", &["id"]).and_then(|data| data.short_text("id")),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, NOW, assert_conventions, event, outcome};

    const BODY: &str = r#"{"event_id":"evt_1","event_type":"transaction.completed",
        "occurred_at":"2026-01-01T00:37:01.123456Z","notification_id":"ntf_1","data":{"id":"txn_1","status":"completed"}}"#;

    #[test]
    fn what_fields_become() {
        let event = event(&Paddle, BODY);
        assert_eq!(event.id.as_deref(), Some("evt_1"));
        assert_eq!(event.event_type, "paddle.transaction.completed");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_227_821_123));
        assert_eq!(event.subject.as_deref(), Some("txn_1"));
        assert_eq!(event.payload, BODY);
    }

    #[test]
    fn every_delivery_of_an_event_is_the_same_fact_and_another_event_is_not() {
        let identity = |body: &str| {
            let event = event(&Paddle, body);
            (event.id, event.fact)
        };
        // A replay and a second destination have a notification of their own.
        assert_eq!(identity(BODY), identity(&BODY.replace("ntf_1", "ntf_2")));
        assert_ne!(identity(BODY), identity(&BODY.replace("evt_1", "evt_2")));
    }

    #[test]
    fn five_seconds_are_tolerated_either_way() {
        for (age, expected) in
            [(5, "accept"), (6, "signature_stale"), (-5, "accept"), (-6, "signature_stale")]
        {
            let request = Outgoing::post("", MEDIA_TYPE, BODY);
            let outcome = Arriving::signed_at(&Paddle, request, NOW - age).outcome(&Paddle);
            assert_eq!(outcome, expected, "{age} s");
        }
    }

    #[test]
    fn every_bit_of_the_body_and_of_the_time_counts() {
        let good = Arriving::signed(&Paddle, BODY);
        for bit in 0..BODY.len() * 8 {
            let mut changed = good.clone();
            changed.body[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(changed.outcome(&Paddle), "signature_mismatch", "bit {bit}");
        }
        let later = good
            .headers
            .iter()
            .map(|(name, value)| (*name, value.replace(&NOW.to_string(), &(NOW + 1).to_string())));
        let later = Arriving { headers: later.collect(), ..good.clone() };
        assert_eq!(later.outcome(&Paddle), "signature_mismatch");
    }

    #[test]
    fn what_is_not_an_event_is_refused() {
        for body in ["", "[]", "{}", r#"{"event_type":7}"#, r#"{"event_type":"a","event_id":7}"#] {
            assert_eq!(outcome(&Paddle, body), "unreadable_body", "{body}");
        }
    }

    #[test]
    fn conventions_are_kept() {
        assert_conventions(&Paddle, BODY);
    }
}
