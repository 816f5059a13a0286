//! Calendly: the `Calendly-Webhook-Signature` header; its events have no id.
//!
//! The scheme is the one of developer.calendly.com ("Webhook signatures"), which third parties implement alike; there is no
//! SDK that verifies. The three minutes are those of the documented sample.

use crate::{
    Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{required_event_type, unix_ms_from_rfc3339},
    timed::TimedHeader,
};

/// The signature header, `t=<unix>,v1=<hex>`.
pub const SIGNATURE: TimedHeader = TimedHeader {
    name: "calendly-webhook-signature",
    separator: ',',
    timestamp_key: "t",
    signature_key: "v1",
    joint: ".",
};
/// What the documented sample tolerates.
pub const TOLERANCE_SECONDS: u64 = 180;

const NAME: &str = "calendly";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";
const EVENT_FIELDS: &[&str] = &["event", "created_at", "payload"];

/// The provider `calendly`.
#[derive(Debug, Clone, Copy)]
pub struct Calendly;

impl Provider for Calendly {
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

/// Signs as Calendly does, with one `v1`.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, now_unix: i64) -> Outgoing {
    SIGNATURE.sign(request, secret, now_unix)
}

fn read_event(body: &[u8]) -> Result<VerifiedEvent<'_>, Rejection> {
    let payload = json_text(body)?;
    let fields = Fields::read(payload, EVENT_FIELDS)?;
    let subject = fields.object("payload", &["uri"]).and_then(|payload| payload.short_text("uri"));
    Ok(VerifiedEvent {
        id: None,
        fact: fact(&fields, subject.as_deref()),
        event_type: required_event_type(NAME, &fields, "event")?,
        occurred_at_unix_ms: fields.lenient::<String>("created_at").as_deref().and_then(unix_ms_from_rfc3339),
        subject,
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

/// What happened, to what, and when, to the microsecond; nothing where one of these is missing, so that the payload is
/// the identity.
fn fact(fields: &Fields<'_>, subject: Option<&str>) -> Vec<String> {
    let texts = ["event", "created_at"].map(|name| fields.lenient::<String>(name));
    match (texts, subject) {
        ([Some(event), Some(created_at)], Some(subject)) => vec![event, created_at, subject.to_owned()],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, NOW, assert_conventions, event, outcome};

    const BODY: &str = r#"{"event":"invitee.created","created_at":"2026-01-01T00:00:00.000001Z",
        "created_by":"https://api.calendly.com/users/U1","payload":{"status":"active",
        "uri":"https://api.calendly.com/scheduled_events/E1/invitees/I1"}}"#;

    #[test]
    fn what_fields_become() {
        let event = event(&Calendly, BODY);
        assert_eq!(event.id, None);
        assert_eq!(event.event_type, "calendly.invitee.created");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_225_600_000));
        assert_eq!(
            event.subject.as_deref(),
            Some("https://api.calendly.com/scheduled_events/E1/invitees/I1")
        );
        assert_eq!((event.account, event.payload.as_ref()), (None, BODY));
    }

    #[test]
    fn a_retry_is_the_same_fact_and_another_event_is_not() {
        let fact = |body: &str| event(&Calendly, body).fact;
        let first = fact(BODY);
        assert_eq!(first.len(), 3);
        // A second subscription to the same event differs in who made it.
        for same in [BODY.to_owned(), BODY.replace("users/U1", "users/U2"), BODY.replace("active", "x")] {
            assert_eq!(fact(&same), first, "{same}");
        }
        for (from, to) in [("invitee.created", "invitee.canceled"), ("00.000001", "00.000002"), ("I1", "I2")]
        {
            assert_ne!(fact(&BODY.replace(from, to)), first, "{to}");
        }
        // Without one of the three, the payload is the identity.
        for missing in ["created_at", "payload", "uri"] {
            assert!(fact(&BODY.replace(&format!("\"{missing}\""), "\"x\"")).is_empty(), "{missing}");
        }
    }

    #[test]
    fn three_minutes_are_tolerated_either_way() {
        for (age, expected) in
            [(180, "accept"), (181, "signature_stale"), (-180, "accept"), (-181, "signature_stale")]
        {
            let request = Outgoing::post("", MEDIA_TYPE, BODY);
            let outcome = Arriving::signed_at(&Calendly, request, NOW - age).outcome(&Calendly);
            assert_eq!(outcome, expected, "{age} s");
        }
    }

    #[test]
    fn every_bit_of_the_body_counts() {
        let good = Arriving::signed(&Calendly, BODY);
        for bit in 0..BODY.len() * 8 {
            let mut changed = good.clone();
            changed.body[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(changed.outcome(&Calendly), "signature_mismatch", "bit {bit}");
        }
    }

    #[test]
    fn what_is_not_an_event_is_refused() {
        for body in ["", "[]", "{}", r#"{"event":7}"#, r#"{"event":""}"#, r#"{"event":"a","event":"b"}"#] {
            assert_eq!(outcome(&Calendly, body), "unreadable_body", "{body}");
        }
    }

    #[test]
    fn conventions_are_kept() {
        assert_conventions(&Calendly, BODY);
    }
}
