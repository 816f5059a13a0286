//! The id under which the ledger knows a fact that came from outside. Two requests with the same id are one event.

use crate::ids::{stable_event_id, stable_hash};
use crate::limits::EVENT_ID_CHARS_MAX;

/// What is known of a fact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fact<'a> {
    /// Who tells it.
    pub provider: &'a str,
    /// Whom it concerns; empty if nobody is known.
    pub tenant_id: &'a str,
    /// The provider's own id, unless whoever repeats a signed request could change it: one request could be made into many events.
    pub id: Option<&'a str>,
    /// What else makes it another fact.
    pub also: &'a [&'a str],
    /// Its payload, which is the identity where there is nothing else.
    pub payload: &'a str,
}

/// The provider's own id where that says all, with a digest of what else makes it another fact where it does not, and a digest
/// alone where there is no id.
pub fn ledger_id(fact: &Fact<'_>) -> String {
    let scope = [fact.provider, fact.tenant_id];
    match fact.id {
        Some(id) if fact.also.is_empty() => id.to_owned(),
        Some(id) => {
            let with_fact = [id, ":", &stable_hash(fact.also)].concat();
            // An id that leaves no room for a digest goes into it.
            if with_fact.len() <= EVENT_ID_CHARS_MAX {
                with_fact
            } else {
                stable_event_id(&[scope.as_slice(), &[id], fact.also].concat())
            }
        }
        None if fact.also.is_empty() => stable_event_id(&[fact.provider, fact.tenant_id, fact.payload]),
        None => stable_event_id(&[scope.as_slice(), fact.also].concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(provider_id: Option<&str>, also: &[&str], payload: &str) -> String {
        ledger_id(&Fact { provider: "twilio", tenant_id: "acme", id: provider_id, also, payload })
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
    fn without_an_id_the_fact_is_the_identity_and_without_both_the_payload() {
        assert_eq!(id(None, &["a"], "1"), id(None, &["a"], "2"));
        assert_ne!(id(None, &["a"], "1"), id(None, &["b"], "1"));
        assert_ne!(id(None, &[], "1"), id(None, &[], "2"));
    }

    #[test]
    fn what_has_no_id_of_its_own_is_another_fact_for_another_tenant_or_provider() {
        let fact = Fact { provider: "zoom", tenant_id: "acme", payload: "1", ..Fact::default() };
        assert_ne!(ledger_id(&fact), ledger_id(&Fact { tenant_id: "shop", ..fact }));
        assert_ne!(ledger_id(&fact), ledger_id(&Fact { provider: "xero", ..fact }));
    }
}
