//! Who calls `publish`, and what that caller may publish.
//!
//! The identity is the `props` of the caller's service binding, which only somebody who may deploy can set. Whatever the
//! props do not allow is refused, and props that say nothing allow nothing.

use serde::Deserialize;

use crate::event::Envelope;
use crate::routing::Pattern;
use crate::topic::Topic;

/// The `props` of a service binding: `{ caller, tenant | tenants, types?, topics? }`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caller {
    /// The caller's name, for logs and refusals.
    pub caller: String,
    /// The one tenant that it publishes for.
    tenant: Option<String>,
    /// The tenants that it publishes for; `"*"` for all (an adapter that serves every tenant).
    tenants: Option<Vec<String>>,
    /// The types that it may publish; absent for all.
    types: Option<Vec<Pattern>>,
    /// The topics that its events may reach; absent for all.
    topics: Option<Vec<Topic>>,
}

/// What a caller may not do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// The binding has no props, or props that mean nothing.
    #[error("the service binding does not say who calls: give it props {{ caller, tenant }} ({0})")]
    Unidentified(String),
    /// Another tenant's event.
    #[error("caller '{0}' may not publish for tenant '{1}'")]
    Tenant(String, String),
    /// A type outside `types`.
    #[error("caller '{0}' may not publish events of type '{1}'")]
    Type(String, String),
    /// A route that leads outside `topics`.
    #[error("caller '{0}' may not reach topic '{1}'")]
    Topic(String, Topic),
}

impl Caller {
    /// Reads props from JSON text. Absent props arrive as `{}` and are refused.
    pub fn parse(props: &str) -> Result<Self, Forbidden> {
        let caller: Self = serde_json::from_str(props).map_err(|e| Forbidden::Unidentified(e.to_string()))?;
        if caller.caller.is_empty() {
            return Err(Forbidden::Unidentified("`caller` is empty".to_owned()));
        }
        match (&caller.tenant, &caller.tenants) {
            (Some(_), None) | (None, Some(_)) => Ok(caller),
            _ => {
                Err(Forbidden::Unidentified("exactly one of `tenant` and `tenants` must be given".to_owned()))
            }
        }
    }

    /// The tenant of an event that names none: the caller's, if it has just one.
    pub fn only_tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// Whether this caller may publish the event to those topics.
    pub fn authorize(&self, event: &Envelope, topics: &[Topic]) -> Result<(), Forbidden> {
        let caller = || self.caller.clone();
        if !self.serves(&event.tenant_id) {
            return Err(Forbidden::Tenant(caller(), event.tenant_id.clone()));
        }
        if self.types.as_ref().is_some_and(|types| !types.iter().any(|t| t.matches(&event.event_type))) {
            return Err(Forbidden::Type(caller(), event.event_type.clone()));
        }
        let outside = |topic: &&Topic| self.topics.as_ref().is_some_and(|allowed| !allowed.contains(topic));
        match topics.iter().find(outside) {
            Some(topic) => Err(Forbidden::Topic(caller(), topic.clone())),
            None => Ok(()),
        }
    }

    fn serves(&self, tenant: &str) -> bool {
        self.tenant.as_deref() == Some(tenant)
            || self.tenants.as_ref().is_some_and(|all| all.iter().any(|t| t == tenant || t == "*"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventInput, PlatformEvent};

    fn envelope(tenant: &str) -> Envelope {
        let envelope = format!(
            r#"{{"id":"e","tenantId":"{tenant}","type":"cms.page.published","timestamp":"2026-01-01T00:00:00Z"}}"#
        );
        PlatformEvent::parse(EventInput { envelope, payload: Some("1".to_owned()) }, None).unwrap().envelope
    }

    fn topic(name: &str) -> Topic {
        Topic::try_from(name.to_owned()).unwrap()
    }

    #[test]
    fn props_that_do_not_identify_are_refused() {
        for props in [
            "{}",
            "null",
            "[]",
            r#"{"caller":"cms"}"#,
            r#"{"tenant":"acme"}"#,
            r#"{"caller":"","tenant":"acme"}"#,
            r#"{"caller":"cms","tenant":"acme","tenants":["shop"]}"#,
            r#"{"caller":"cms","tenant":"acme","admin":true}"#,
        ] {
            assert!(matches!(Caller::parse(props), Err(Forbidden::Unidentified(_))), "{props}");
        }
    }

    #[test]
    fn a_caller_publishes_for_its_tenants_types_and_topics_only() {
        let cms =
            Caller::parse(r#"{"caller":"cms","tenant":"acme","types":["cms.**"],"topics":["audit.events"]}"#)
                .unwrap();
        assert_eq!(cms.authorize(&envelope("acme"), &[topic("audit.events")]), Ok(()));
        assert!(matches!(cms.authorize(&envelope("shop"), &[]), Err(Forbidden::Tenant(..))));
        let outside = cms.authorize(&envelope("acme"), &[topic("audit.events"), topic("billing.events")]);
        assert!(matches!(outside, Err(Forbidden::Topic(..))));
        let billing = Caller::parse(r#"{"caller":"b","tenant":"acme","types":["billing.**"]}"#).unwrap();
        assert!(matches!(billing.authorize(&envelope("acme"), &[]), Err(Forbidden::Type(..))));
    }

    #[test]
    fn a_star_serves_every_tenant() {
        let adapter = Caller::parse(r#"{"caller":"stripe","tenants":["*"]}"#).unwrap();
        assert_eq!(adapter.authorize(&envelope("anyone"), &[]), Ok(()));
        assert_eq!(adapter.only_tenant(), None);
    }
}
