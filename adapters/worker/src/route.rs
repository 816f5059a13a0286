//! What a path asks for: a provider, and perhaps a tenant.

use swarm_cloudflare::Bindings;
use swarm_domain::event::is_tenant_id;
use swarm_verify::Provider;

use crate::answer::Refusal;
use crate::served;

/// A path of the form `/webhook/{provider}` or `/webhook/{provider}/{tenant}`.
pub struct Route {
    /// Whose rules the request is verified by.
    pub provider: &'static dyn Provider,
    /// The tenant that the path names.
    pub tenant: Option<String>,
}

impl Route {
    /// The route of a URL, if this deployment serves it.
    pub fn find(url: &str, bindings: &Bindings) -> Result<Self, Refusal> {
        let served = bindings.required_var("PROVIDERS")?;
        Self::parse(path(url), &served, |name| served::provider(name, bindings))
    }

    /// The route of a provider and a tenant that were found before.
    pub fn of(provider: &str, tenant: Option<String>, bindings: &Bindings) -> Result<Self, Refusal> {
        Ok(Self { provider: served::provider(provider, bindings)?, tenant })
    }

    fn parse(
        path: &str,
        served: &str,
        provider: impl Fn(&str) -> Result<&'static dyn Provider, Refusal>,
    ) -> Result<Self, Refusal> {
        let mut parts = path.strip_prefix("/webhook/").ok_or(Refusal::NotFound)?.split('/');
        let name = parts.next().unwrap_or_default();
        let tenant = parts.next().filter(|tenant| !tenant.is_empty());
        if parts.next().is_some() || !served.split([',', ' ']).any(|provider| provider == name) {
            return Err(Refusal::NotFound);
        }
        let provider = provider(name)?;
        match tenant {
            Some(tenant) if !is_tenant_id(tenant) => Err(Refusal::NotFound),
            tenant => Ok(Self { provider, tenant: tenant.map(str::to_owned) }),
        }
    }
}

/// The path of an absolute URL as the runtime writes it: after the host, before the query.
fn path(url: &str) -> &str {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let from_path = after_scheme.find('/').and_then(|at| after_scheme.get(at..)).unwrap_or_default();
    from_path.split(['?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stands_between_host_and_query() {
        for (url, expected) in [
            ("https://hooks.example.com/webhook/stripe?x=/y", "/webhook/stripe"),
            ("http://127.0.0.1:8787/webhook/stripe/acme#z", "/webhook/stripe/acme"),
            ("https://hooks.example.com", ""),
            ("https://hooks.example.com/", "/"),
        ] {
            assert_eq!(path(url), expected, "{url}");
        }
    }

    fn parse(path: &str) -> Option<(String, Option<String>)> {
        let provider = |name: &str| swarm_verify::provider(name).ok_or(Refusal::NotFound);
        let route = Route::parse(path, "stripe", provider).ok()?;
        Some((route.provider.name().to_owned(), route.tenant))
    }

    #[test]
    fn a_path_names_a_provider_and_perhaps_a_tenant() {
        assert_eq!(parse("/webhook/stripe"), Some(("stripe".to_owned(), None)));
        assert_eq!(parse("/webhook/stripe/"), Some(("stripe".to_owned(), None)));
        assert_eq!(parse("/webhook/stripe/acme"), Some(("stripe".to_owned(), Some("acme".to_owned()))));
    }

    #[test]
    fn every_other_path_is_not_found() {
        for path in
            ["/", "/webhook", "/webhook/", "/webhook/github", "/webhook/stripe/a/b", "/webhook/stripe/a%20b"]
        {
            assert_eq!(parse(path), None, "{path}");
        }
    }
}
