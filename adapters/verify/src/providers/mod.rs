//! All providers, one file each, by name.

pub mod bitbucket;
pub mod dropbox;
pub mod github;
pub mod gitlab;
pub mod mollie;
pub mod shopify;
pub mod stripe;
pub mod woocommerce;

use crate::Provider;

/// All providers, sorted by name.
#[must_use]
pub fn providers() -> &'static [&'static dyn Provider] {
    &[
        &bitbucket::Bitbucket,
        &dropbox::Dropbox,
        &github::GitHub,
        &gitlab::GitLab,
        &mollie::Mollie,
        &shopify::Shopify,
        &stripe::Stripe,
        &woocommerce::WooCommerce,
    ]
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
}
