//! Whose events a webhook brings.
//!
//! In this order: the tenant in the path; the one that a header names; the one that a place in the event names; the one that the
//! provider's account belongs to; the deployment's default. Nothing that a stranger could write may choose a tenant by itself: a
//! header is not signed, so it only chooses among tenants that have secrets of their own, by which the request then has to be
//! signed. And where a tenant has secrets of its own, nothing that is signed with another one reaches it.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::is_tenant_id;

/// How one provider's events find their tenants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenancy {
    /// From what the provider calls them (accounts, shops, workspaces) to tenants. What is not listed is nobody's.
    pub mapping: Option<BTreeMap<String, String>>,
    /// Whether an account that no mapping lists is a tenant itself.
    pub accounts_are_tenants: bool,
    /// Whose events they are when nothing says so.
    pub default_tenant: Option<String>,
    /// The tenants with secrets of their own.
    pub with_secrets: BTreeSet<String>,
}

/// An event would reach a tenant by a signature that is not that tenant's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the event is for a tenant with a secret of its own, and was not signed with it")]
pub struct NotTheirs;

impl Tenancy {
    /// The tenant that is known before anything is verified, and by whose secrets, if it has any, the request is to be verified.
    pub fn of_request(&self, path: Option<&str>, header: Option<&str>) -> Option<String> {
        let named = || {
            let tenant = match &self.mapping {
                Some(mapping) => mapping.get(header?)?,
                None => header?,
            };
            self.with_secrets.contains(tenant).then(|| tenant.to_owned())
        };
        path.map(str::to_owned).or_else(named)
    }

    /// The tenant of a verified event. `known` is that of its request; `pointed` is what the configured place in it says.
    pub fn of_event(
        &self,
        known: Option<&str>,
        pointed: Option<&str>,
        account: Option<&str>,
    ) -> Result<Option<String>, NotTheirs> {
        if let Some(known) = known {
            return Ok(Some(known.to_owned()));
        }
        let tenant = pointed
            .and_then(|value| self.listed(value, self.mapping.is_none()))
            .or_else(|| self.listed(account?, self.accounts_are_tenants))
            .or_else(|| self.default_tenant.clone());
        match tenant {
            Some(tenant) if self.with_secrets.contains(&tenant) => Err(NotTheirs),
            tenant => Ok(tenant),
        }
    }

    /// The tenant that a provider's name for it stands for, or the name itself if it may.
    fn listed(&self, name: &str, may_be_itself: bool) -> Option<String> {
        let mapped = self.mapping.as_ref().and_then(|mapping| mapping.get(name)).map(String::as_str);
        let itself = Some(name).filter(|name| may_be_itself && is_tenant_id(name));
        mapped.or(itself).map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped() -> Tenancy {
        let pairs = [("shop-a.example", "acme"), ("shop-b.example", "bolt")];
        Tenancy {
            mapping: Some(pairs.map(|(name, tenant)| (name.to_owned(), tenant.to_owned())).into()),
            default_tenant: Some("rest".to_owned()),
            ..Tenancy::default()
        }
    }

    fn tenant(
        tenancy: &Tenancy,
        known: Option<&str>,
        pointed: Option<&str>,
        account: Option<&str>,
    ) -> String {
        tenancy.of_event(known, pointed, account).unwrap().unwrap_or_default()
    }

    #[test]
    fn the_first_that_says_so_counts() {
        let tenancy = mapped();
        let (a, b) = (Some("shop-a.example"), Some("shop-b.example"));
        for (known, pointed, account, expected) in [
            (Some("path"), a, b, "path"),
            (None, a, b, "acme"),
            (None, Some("unlisted"), b, "bolt"),
            (None, None, b, "bolt"),
            (None, None, Some("unlisted"), "rest"),
            (None, None, None, "rest"),
        ] {
            assert_eq!(
                tenant(&tenancy, known, pointed, account),
                expected,
                "{known:?} {pointed:?} {account:?}"
            );
        }
    }

    #[test]
    fn without_a_mapping_a_signed_place_and_some_accounts_are_tenants_themselves() {
        let plain = Tenancy::default();
        assert_eq!(tenant(&plain, None, Some("acme"), None), "acme");
        assert_eq!(tenant(&plain, None, Some("no tenant"), None), "");
        assert_eq!(tenant(&plain, None, None, Some("acct_1")), "");
        let connect = Tenancy { accounts_are_tenants: true, ..mapped() };
        assert_eq!(tenant(&connect, None, None, Some("acct_1")), "acct_1");
        assert_eq!(tenant(&connect, None, None, Some("shop-a.example")), "acme");
        assert_eq!(tenant(&connect, None, Some("unlisted"), Some("acct_1")), "acct_1");
    }

    #[test]
    fn a_header_chooses_only_among_tenants_with_secrets_of_their_own() {
        let mut tenancy = mapped();
        assert_eq!(tenancy.of_request(None, Some("shop-a.example")), None);
        tenancy.with_secrets.insert("acme".to_owned());
        assert_eq!(tenancy.of_request(None, Some("shop-a.example")).as_deref(), Some("acme"));
        for header in ["shop-b.example", "acme", "unlisted", ""] {
            assert_eq!(tenancy.of_request(None, Some(header)), None, "{header}");
        }
        assert_eq!(tenancy.of_request(Some("path"), Some("shop-a.example")).as_deref(), Some("path"));
        tenancy.mapping = None;
        assert_eq!(tenancy.of_request(None, Some("acme")).as_deref(), Some("acme"));
        assert_eq!(tenancy.of_request(None, Some("bolt")), None);
    }

    #[test]
    fn nothing_reaches_a_tenant_with_secrets_but_by_these() {
        let mut tenancy = mapped();
        tenancy.with_secrets.insert("acme".to_owned());
        assert_eq!(tenancy.of_event(None, Some("shop-a.example"), None), Err(NotTheirs));
        assert_eq!(tenancy.of_event(None, None, Some("shop-a.example")), Err(NotTheirs));
        assert_eq!(tenancy.of_event(Some("acme"), None, None), Ok(Some("acme".to_owned())));
        tenancy.default_tenant = Some("acme".to_owned());
        assert_eq!(tenancy.of_event(None, None, None), Err(NotTheirs));
    }
}
