//! Svix: Standard Webhooks under header names of its own. Clerk, Resend and others send through it.
//!
//! The scheme is in [`crate::standard`], the form of a body is the sender's. Facts and verdicts are those of svix 1.99.1
//! (npm, `Webhook.verify`) and 2.9.1 (PyPI).

use super::standardwebhooks::read_event;
use crate::{
    Context, Outgoing, Provider, Rejection, Request, Settings, Verified,
    standard::{StandardHeaders, require_standard, sign_standard},
};

/// Svix's own names. It sends the unbranded ones to receivers of senders that chose so.
pub const SVIX_HEADERS: StandardHeaders =
    StandardHeaders { id: "svix-id", timestamp: "svix-timestamp", signature: "svix-signature" };

const NAME: &str = "svix";
const METHOD: &str = "POST";

/// The provider `svix`.
#[derive(Debug, Clone, Copy)]
pub struct Svix;

impl Provider for Svix {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Senders may choose the content type, so none is refused.
    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method(METHOD)?;
        let id = require_standard(request, header_names(request), settings, context)?;
        Ok(Verified::new(vec![read_event(NAME, id, request.body)?]))
    }
}

/// The family of names of which the request brings the signature, Svix's own first. Families are not mixed: what a
/// header of the other one says was not meant to be read.
fn header_names(request: &Request<'_>) -> &'static StandardHeaders {
    let has_own = request.headers.all(SVIX_HEADERS.signature).next().is_some();
    if has_own { &SVIX_HEADERS } else { &StandardHeaders::WEBHOOK }
}

/// Signs as Svix does, under its own names and with one `v1`.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, now_unix: i64) -> Outgoing {
    sign_standard(request, &SVIX_HEADERS, secret, now_unix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, NOW, SECRET, event};

    const CLERK: &str = r#"{"data":{"id":"user_1","object":"user"},"object":"event","timestamp":1767226485000,
        "type":"user.created","instance_id":"ins_1"}"#;
    const RESEND: &str =
        r#"{"type":"email.delivered","created_at":"2026-01-01T00:14:45.000Z","data":{"email_id":"a1"}}"#;

    #[test]
    fn what_fields_become() {
        for (body, event_type, subject) in
            [(CLERK, "svix.user.created", Some("user_1")), (RESEND, "svix.email.delivered", None)]
        {
            let event = event(&Svix, body);
            assert!(event.id.is_some_and(|id| id.starts_with("msg_")));
            assert_eq!(event.event_type, event_type);
            assert_eq!(event.occurred_at_unix_ms, Some(1_767_226_485_000));
            assert_eq!(event.subject.as_deref(), subject);
            assert_eq!((event.account, event.payload.as_ref()), (None, body));
        }
    }

    #[test]
    fn both_families_of_names_are_known_and_not_mixed() {
        let own = Arriving::signed(&Svix, CLERK);
        let other = Arriving {
            headers: own.headers.iter().map(|(name, value)| (unbranded(name), value.clone())).collect(),
            ..own.clone()
        };
        assert_eq!((own.outcome(&Svix), other.outcome(&Svix)), ("accept", "accept"));
        for (name, value) in own.headers.iter().filter(|(name, _)| *name != "content-type") {
            let mut mixed = own.clone();
            mixed.headers.retain(|(header, _)| header != name);
            mixed.headers.push((unbranded(name), value.clone()));
            assert_eq!(mixed.outcome(&Svix), "signature_missing", "{name}");
        }
        let mut forged = other;
        forged.headers.push((SVIX_HEADERS.signature, "v1,".to_owned()));
        assert_eq!(forged.outcome(&Svix), "signature_missing", "its own names go first");
    }

    fn unbranded(name: &'static str) -> &'static str {
        match name {
            "svix-id" => "webhook-id",
            "svix-timestamp" => "webhook-timestamp",
            "svix-signature" => "webhook-signature",
            other => other,
        }
    }

    #[test]
    fn a_retry_is_the_same_fact_and_another_message_is_not() {
        let identity = |id: &str, signed_unix| {
            let request = Outgoing::post("", "application/json", CLERK).with_header(SVIX_HEADERS.id, id);
            let verified = Arriving::signed_at(&Svix, request, signed_unix).verified(&Svix);
            verified.events.into_iter().map(|event| (event.id, event.fact)).collect::<Vec<_>>()
        };
        assert_eq!(identity("msg_1", NOW - 200), identity("msg_1", NOW));
        assert_ne!(identity("msg_1", NOW), identity("msg_2", NOW));
    }

    #[test]
    fn without_a_secret_that_is_a_key_nothing_passes() {
        let good = Arriving::signed(&Svix, CLERK);
        for (secrets, expected) in
            [(vec![], "no_secret"), (vec!["whsec_"], "no_secret"), (vec!["whsec_", SECRET], "accept")]
        {
            let settings = Settings::new(&Svix, crate::Secrets::from_list(&secrets));
            assert_eq!(good.outcome_with(&Svix, &settings), expected, "{secrets:?}");
        }
    }
}
