//! All providers, one file each, by name.

pub mod adyen;
pub mod asana;
pub mod aws_sns;
pub mod bitbucket;
pub mod calendly;
pub mod coinbase_commerce;
pub mod discord;
pub mod docusign;
pub mod dropbox;
pub mod github;
pub mod gitlab;
pub mod google_pubsub;
pub mod hubspot;
pub mod intercom;
pub mod lemonsqueezy;
pub mod line;
pub mod linear;
pub mod mailgun;
pub mod mandrill;
pub mod meta;
pub mod microsoft_graph;
pub mod mollie;
pub mod openai;
pub mod paddle;
pub mod paypal;
pub mod plaid;
pub mod postmark;
pub mod razorpay;
pub mod sendgrid;
pub mod shopify;
pub mod slack;
pub mod square;
pub mod standardwebhooks;
pub mod stripe;
pub mod svix;
pub mod trello;
pub mod twilio;
pub mod twitter_x;
pub mod typeform;
pub mod woocommerce;
pub mod xero;
pub mod zendesk;
pub mod zoom;

use crate::Provider;

/// All providers, sorted by name.
#[must_use]
pub fn providers() -> &'static [&'static dyn Provider] {
    &[
        &adyen::Adyen,
        &asana::Asana,
        &aws_sns::AwsSns,
        &bitbucket::Bitbucket,
        &calendly::Calendly,
        &coinbase_commerce::CoinbaseCommerce,
        &discord::Discord,
        &docusign::DocuSign,
        &dropbox::Dropbox,
        &github::GitHub,
        &gitlab::GitLab,
        &google_pubsub::GooglePubSub,
        &hubspot::HubSpot,
        &intercom::Intercom,
        &lemonsqueezy::LemonSqueezy,
        &line::Line,
        &linear::Linear,
        &mailgun::Mailgun,
        &mandrill::Mandrill,
        &meta::Meta,
        &microsoft_graph::MicrosoftGraph,
        &mollie::Mollie,
        &openai::OpenAi,
        &paddle::Paddle,
        &paypal::PayPal,
        &plaid::Plaid,
        &postmark::Postmark,
        &razorpay::Razorpay,
        &sendgrid::SendGrid,
        &shopify::Shopify,
        &slack::Slack,
        &square::Square,
        &standardwebhooks::StandardWebhooks,
        &stripe::Stripe,
        &svix::Svix,
        &trello::Trello,
        &twilio::Twilio,
        &twitter_x::TwitterX,
        &typeform::Typeform,
        &woocommerce::WooCommerce,
        &xero::Xero,
        &zendesk::Zendesk,
        &zoom::Zoom,
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
