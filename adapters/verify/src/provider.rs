//! What a provider is to the rest of the gateway, and how one of its endpoints is set up.

use std::collections::BTreeMap;

use crate::{
    Rejection, Request, Secrets, Verified, keys::KeySource, limits::DEFAULT_TOLERANCE_SECONDS,
    public_key::Verifier,
};

/// One provider's way to sign and to shape its webhooks.
///
/// An implementation verifies before it reads the body, fails closed on anything it does not know, and keeps no
/// state.
pub trait Provider: Send + Sync {
    /// The name in URLs, settings and event types: lower-case, `stripe`.
    fn name(&self) -> &str;

    /// The methods that it uses. Handshakes and probes of some come as GET or HEAD.
    fn methods(&self) -> &'static [&'static str] {
        &["POST"]
    }

    /// What can or must be configured beside secrets and tolerance.
    fn options(&self) -> &'static [ProviderOption] {
        &[]
    }

    /// Whether an account of the provider is a tenant unless the deployment says otherwise: where the provider names one only
    /// for events on behalf of others.
    fn accounts_are_tenants(&self) -> bool {
        false
    }

    /// How far the signed time may lie from the clock, in seconds, when nothing else is configured.
    fn default_tolerance_seconds(&self) -> u64 {
        DEFAULT_TOLERANCE_SECONDS
    }

    /// Where the key is that this request is signed with, if the provider publishes it and nobody configures it.
    /// Whoever calls fetches it and hands it to [`verify`](Self::verify).
    ///
    /// # Errors
    /// The [`Rejection`] of a request that names a place which is not the provider's.
    fn key_source(
        &self,
        _request: &Request<'_>,
        _settings: &Settings,
    ) -> Result<Option<KeySource>, Rejection> {
        Ok(None)
    }

    /// Verifies a request and reads its events.
    ///
    /// # Errors
    /// The [`Rejection`] that says what to answer and what to log.
    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection>;
}

/// What a verdict depends on beside the request and the settings.
#[derive(Clone, Copy)]
pub struct Context<'k> {
    /// When the request arrived, in seconds since 1970.
    pub now_unix: i64,
    /// What was found at [`Provider::key_source`]: a certificate or a key as text. `None` when the provider answered
    /// that there is no such key, which refuses the request; whoever could not reach the provider does not verify at
    /// all but answers [`Rejection::KeyUnavailable`].
    pub key: Option<&'k str>,
    /// Who does the arithmetic of public keys.
    pub verifier: &'k dyn Verifier,
}

#[cfg(feature = "rust-crypto")]
impl<'k> Context<'k> {
    /// A request that arrived at this time, of a provider that publishes no key. The arithmetic is RustCrypto's.
    #[must_use]
    pub fn at(now_unix: i64) -> Self {
        Self { now_unix, key: None, verifier: &crate::RustCrypto }
    }

    /// The same with what was found at [`Provider::key_source`].
    #[must_use]
    pub fn with_key(self, key: Option<&'k str>) -> Self {
        Self { key, ..self }
    }
}

/// A setting of one provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderOption {
    /// Its name, lower-case with underscores: `verify_token`.
    pub name: &'static str,
    /// Whether an endpoint without it must not start.
    pub is_required: bool,
    /// Half a sentence that says what it is, for whoever has to configure it.
    pub help: &'static str,
}

impl ProviderOption {
    /// The address that the provider calls, for those that sign it.
    pub const URL: Self = Self {
        name: "url",
        is_required: false,
        help: "the endpoint's address as the provider knows it, if requests arrive here under another one",
    };
}

/// How one endpoint is set up.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The secrets, any of which may match. With none, every request is refused.
    pub secrets: Secrets,
    /// How far the signed time may lie from the clock, in either direction. 0 asks for the very second. Providers
    /// that sign no time do not look at it.
    pub tolerance_seconds: u64,
    options: BTreeMap<&'static str, String>,
}

impl Settings {
    /// An endpoint of a provider with these secrets and the defaults for the rest.
    #[must_use]
    pub fn new(provider: &dyn Provider, secrets: Secrets) -> Self {
        Self { secrets, tolerance_seconds: provider.default_tolerance_seconds(), options: BTreeMap::new() }
    }

    /// The same with one more of [`Provider::options`].
    #[must_use]
    pub fn with_option(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.options.insert(name, value.into());
        self
    }

    /// The value of an option; `None` when it is not configured or blank.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str).filter(|value| !value.trim().is_empty())
    }

    /// The address that the provider signed: [`ProviderOption::URL`] if configured, else that of the request.
    #[must_use]
    pub fn signed_url<'a>(&'a self, request: &Request<'a>) -> &'a str {
        self.option(ProviderOption::URL.name).unwrap_or(request.url)
    }

    /// Whether there is a secret at all.
    ///
    /// # Errors
    /// [`Rejection::NoSecret`].
    pub fn require_secrets(&self) -> Result<(), Rejection> {
        if self.secrets.is_empty() { Err(Rejection::NoSecret) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::stripe::Stripe;

    #[test]
    fn debug_of_settings_shows_no_secret() {
        let settings = Settings::new(&Stripe, Secrets::from_list(["whsec_hidden"]));
        assert!(!format!("{settings:?}").contains("hidden"));
        assert_eq!(settings.tolerance_seconds, 300);
    }

    #[test]
    fn a_blank_option_is_none() {
        let settings = Settings::new(&Stripe, Secrets::default()).with_option("a", " ").with_option("b", "x");
        assert_eq!(
            (settings.option("a"), settings.option("b"), settings.option("c")),
            (None, Some("x"), None)
        );
        assert_eq!(settings.require_secrets(), Err(Rejection::NoSecret));
    }
}
