//! From a provider's event to ours.

use swarm_client::Event;
use swarm_domain::ids::{stable_event_id, stable_hash};
use swarm_domain::limits::EVENT_ID_CHARS_MAX;
use swarm_domain::time::Timestamp;
use swarm_verify::VerifiedEvent;

use crate::route::Route;
use crate::settings::Settings;

/// Puts a verified event into the envelope. The tenant is the one in the path, else the one that the provider's account belongs
/// to, else the deployment's default.
pub fn platform_event(
    route: &Route,
    settings: &Settings,
    verified: VerifiedEvent<'_>,
    now: Timestamp,
) -> Event {
    let provider = route.provider.name();
    let tenant_id = route.tenant.clone().or_else(|| settings.tenant_of(verified.account.as_deref()));
    let id = ledger_id(provider, tenant_id.as_deref().unwrap_or_default(), &verified);
    let payload_json = verified.payload.into_owned();
    Event {
        id,
        tenant_id,
        r#type: verified.event_type,
        timestamp: verified.occurred_at_unix_ms.map_or(now, Timestamp::from_unix_ms).rfc3339(),
        source: Some(source(provider, verified.livemode)),
        subject: verified.subject,
        version: verified.version,
        causation_id: verified.causation_id,
        actor: verified.account,
        payload_json,
        ..Event::default()
    }
}

/// The id under which the ledger knows a fact: the provider's own, with a digest of what else makes it another fact. An id
/// that is not signed does not count, or one signed request could be made into many events.
fn ledger_id(provider: &str, tenant_id: &str, verified: &VerifiedEvent<'_>) -> String {
    let fact: Vec<&str> = verified.fact.iter().map(String::as_str).collect();
    match verified.id.as_ref().filter(|_| !verified.is_id_unsigned) {
        Some(id) if fact.is_empty() => id.clone(),
        Some(id) => {
            let with_fact = format!("{id}:{}", stable_hash(&fact));
            // An id that leaves no room for a digest goes into it.
            if with_fact.len() <= EVENT_ID_CHARS_MAX {
                with_fact
            } else {
                stable_event_id(&[&[provider, tenant_id, id], fact.as_slice()].concat())
            }
        }
        None if fact.is_empty() => stable_event_id(&[provider, tenant_id, &verified.payload]),
        None => stable_event_id(&[&[provider, tenant_id], fact.as_slice()].concat()),
    }
}

/// Test-mode events must not be taken for real ones, so the mode is part of where an event comes from.
fn source(provider: &str, livemode: Option<bool>) -> String {
    match livemode {
        Some(true) => format!("{provider}/live"),
        Some(false) => format!("{provider}/test"),
        None => provider.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(provider_id: Option<&str>, fact: &[&str], payload: &str) -> String {
        let mut verified = VerifiedEvent::default();
        verified.id = provider_id.map(str::to_owned);
        verified.fact = fact.iter().map(|&part| part.to_owned()).collect();
        verified.payload = payload.to_owned().into();
        ledger_id("twilio", "acme", &verified)
    }

    #[test]
    fn an_id_that_says_all_stays_as_it_is() {
        assert_eq!(id(Some("evt_1"), &[], "1"), "evt_1");
    }

    #[test]
    fn facts_under_one_id_are_kept_apart_and_the_id_can_be_seen() {
        let (sent, delivered) = (id(Some("SM1"), &["sent"], "1"), id(Some("SM1"), &["delivered"], "1"));
        assert!(sent.starts_with("SM1:") && sent.len() == 36 && sent != delivered);
        assert_eq!(sent, id(Some("SM1"), &["sent"], "2"), "the payload of a retry may differ");
        assert_ne!(id(Some("SM1"), &["a", "b"], ""), id(Some("SM1"), &["ab"], ""));
        let long = "x".repeat(EVENT_ID_CHARS_MAX);
        assert!(id(Some(&long), &["sent"], "").len() <= EVENT_ID_CHARS_MAX);
        assert_ne!(id(Some(&long), &["sent"], ""), id(Some(&long), &["delivered"], ""));
    }

    #[test]
    fn an_id_that_anybody_can_change_is_no_identity() {
        let id = |provider_id: &str, fact: &str| {
            let mut verified = VerifiedEvent::default();
            verified.id = Some(provider_id.to_owned());
            verified.is_id_unsigned = true;
            verified.fact = vec![fact.to_owned()];
            ledger_id("razorpay", "acme", &verified)
        };
        assert_eq!(id("a", "body"), id("b", "body"));
        assert_ne!(id("a", "body"), id("a", "other body"));
    }

    #[test]
    fn without_an_id_the_fact_is_the_identity_and_without_both_the_payload() {
        assert_eq!(id(None, &["a"], "1"), id(None, &["a"], "2"));
        assert_ne!(id(None, &["a"], "1"), id(None, &["b"], "1"));
        assert_ne!(id(None, &[], "1"), id(None, &[], "2"));
    }
}
