//! What a provider is to the rest of the gateway, and which there are.

use crate::{Rejection, Request, Secrets, Verified, limits::DEFAULT_TOLERANCE_SECONDS, stripe::Stripe};

/// One provider's way to sign and to shape its webhooks.
///
/// An implementation verifies before it reads the body, fails closed on anything it does not know, and keeps no
/// state.
pub trait Provider: Send + Sync {
    /// The name in URLs, settings and event types: lower-case, `stripe`.
    fn name(&self) -> &'static str;

    /// Verifies a request that arrived at `now_unix`, seconds since 1970, and reads its events.
    ///
    /// # Errors
    /// The [`Rejection`] that says what to answer and what to log.
    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        now_unix: i64,
    ) -> Result<Verified<'a>, Rejection>;
}

/// How one endpoint is set up. More settings may come, as other providers need them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The secrets, any of which may match. With none, every request is refused.
    pub secrets: Secrets,
    /// How far the signed time may lie from the clock, in either direction; 300 unless set. 0 asks for the very
    /// second. Providers that sign no time do not look at it.
    pub tolerance_seconds: u64,
}

impl Settings {
    /// Settings with these secrets and the defaults for the rest.
    #[must_use]
    pub fn new(secrets: Secrets) -> Self {
        Self { secrets, tolerance_seconds: DEFAULT_TOLERANCE_SECONDS }
    }
}

/// All providers, by name.
#[must_use]
pub fn providers() -> &'static [&'static dyn Provider] {
    &[&Stripe]
}

/// The provider of this name, exactly as [`Provider::name`] spells it.
#[must_use]
pub fn provider(name: &str) -> Option<&'static dyn Provider> {
    providers().iter().copied().find(|provider| provider.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_of_an_event_type_and_sorted() {
        let names: Vec<_> = providers().iter().map(|provider| provider.name()).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        for name in names {
            assert!(
                !name.is_empty()
                    && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            );
        }
    }

    #[test]
    fn only_the_exact_name_finds_a_provider() {
        assert_eq!(provider("stripe").map(Provider::name), Some("stripe"));
        for name in ["", "Stripe", "stripe ", "strip", "unknown"] {
            assert!(provider(name).is_none(), "{name:?}");
        }
    }

    #[test]
    fn debug_of_settings_shows_no_secret() {
        let settings = Settings::new(Secrets::from_list(["whsec_hidden"]));
        assert!(!format!("{settings:?}").contains("hidden"));
        assert_eq!(settings.tolerance_seconds, 300);
    }
}
