//! Requests as providers send them, one of each type; names, ids and secrets in them are made up.

use serde::Deserialize;
use std::collections::BTreeMap;
use swarm_verify::Outgoing;

use crate::renew::{fresh_id, with_times};

macro_rules! samples {
    ($($provider:literal,)*) => {
        /// A file for each provider, a request on each line.
        const SAMPLES: &[(&str, &str)] = &[$(($provider, include_str!(concat!("../samples/", $provider, ".jsonl"))),)*];
    };
}

samples![
    "adyen",
    "asana",
    "bitbucket",
    "calendly",
    "coinbase_commerce",
    "docusign",
    "dropbox",
    "github",
    "gitlab",
    "hubspot",
    "intercom",
    "lemonsqueezy",
    "line",
    "linear",
    "mailgun",
    "mandrill",
    "meta",
    "microsoft_graph",
    "mollie",
    "openai",
    "paddle",
    "postmark",
    "razorpay",
    "shopify",
    "slack",
    "square",
    "standardwebhooks",
    "stripe",
    "svix",
    "trello",
    "twilio",
    "twitter_x",
    "typeform",
    "woocommerce",
    "xero",
    "zendesk",
    "zoom",
];

/// A request without its signature.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// The provider's type of the event in it.
    pub r#type: String,
    /// What is new in each request, the id of its first event above all.
    ids: Vec<String>,
    /// When it was made, in seconds since 1970.
    now: i64,
    headers: BTreeMap<String, String>,
    body: String,
}

/// A sample with another id, as if it was made now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// The new id; empty if there is none.
    pub id: String,
    /// The request, not signed yet.
    pub request: Outgoing,
}

/// There is no sample of this type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no sample of that type; there are {}", .0.join(", "))]
pub struct NoSample(Vec<String>);

impl Sample {
    /// All samples of a provider; none if its requests cannot be signed here.
    #[must_use]
    pub fn all(provider: &str) -> Vec<Self> {
        let lines = SAMPLES.iter().filter(|(name, _)| *name == provider).flat_map(|(_, lines)| lines.lines());
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The sample of a type, or the first.
    ///
    /// # Errors
    /// [`NoSample`] names the types that there are.
    pub fn find(provider: &str, wanted: Option<&str>) -> Result<Self, NoSample> {
        let all = Self::all(provider);
        let types = all.iter().map(|sample| sample.r#type.clone()).collect();
        let found = all.into_iter().find(|sample| wanted.is_none_or(|wanted| wanted == sample.r#type));
        found.ok_or(NoSample(types))
    }

    /// The request with another id and with its times brought up to date, on its way to a URL. `token` is random, of 24 hex digits
    /// or more.
    #[must_use]
    pub fn renewed(&self, url: &str, now_unix: i64, token: &str) -> Renewed {
        let ids: Vec<_> = self.ids.iter().map(|id| (id, fresh_id(id, token))).collect();
        let renew = |text: &str| {
            let text = ids.iter().fold(text.to_owned(), |text, (old, new)| text.replace(*old, new));
            with_times(&text, self.now, now_unix)
        };
        let body = renew(&self.body);
        // Where the id is not signed, the body is the identity, so it has to be new as well.
        let body = match body.strip_prefix('{') {
            Some(rest) if !rest.trim_start().starts_with('}') => format!(r#"{{"trigger":"{token}",{rest}"#),
            _ => body,
        };
        let mut request =
            Outgoing { method: "POST", url: url.to_owned(), headers: Vec::new(), body: body.into_bytes() };
        for (name, value) in &self.headers {
            // Names of headers are as many as the samples have, so they may stay until the program ends.
            request = request.with_header(name.clone().leak(), renew(value));
        }
        let id = ids.into_iter().next().map(|(_, id)| id).unwrap_or_default();
        Renewed { id, request }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Trigger, TriggerError, Wrong, with_field};
    use swarm_verify::{Context, Request, Secrets, Settings, providers, signer};

    const SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    const NOW: i64 = 1_800_000_000;
    const URL: &str = "https://hooks.example.com/webhook/x/acme";
    const TOKENS: [&str; 2] = ["5f3a9c0e7b1d2846a0b1c2d3", "a0b1c2d35f3a9c0e7b1d2846"];

    fn secret(provider: &str) -> String {
        if provider == "postmark" { format!("user:{SECRET}") } else { SECRET.to_owned() }
    }

    #[test]
    fn every_provider_that_can_be_signed_for_has_samples_which_its_rules_take() {
        for provider in providers().iter().map(|provider| provider.name()) {
            let samples = Sample::all(provider);
            assert_eq!(samples.is_empty(), signer(provider).is_none(), "{provider}");
            let lines = SAMPLES
                .iter()
                .find(|(name, _)| *name == provider)
                .map_or(0, |(_, text)| text.lines().count());
            assert_eq!(samples.len(), lines, "{provider}: a line that cannot be read");
            let secret = secret(provider);
            for sample in samples {
                let trigger = Trigger::of(provider, &secret).unwrap();
                let renewed = sample.renewed(URL, NOW, TOKENS[0]);
                let signed = trigger.signed(renewed.request.clone(), NOW);
                assert!(trigger.is_taken(&signed, NOW), "{provider} {}", sample.r#type);
                let forged = trigger.wrong(renewed.request.clone(), NOW, Wrong::Signature);
                assert!(forged.is_ok(), "{provider} {}", sample.r#type);
                for wrong in [Wrong::Stale, Wrong::Body] {
                    let made = trigger.wrong(renewed.request.clone(), NOW, wrong);
                    let covered = matches!(&made, Err(TriggerError::NotCovered(_)));
                    assert!(covered || !trigger.is_taken(&made.unwrap(), NOW), "{provider} {wrong:?}");
                }
            }
        }
    }

    /// What the ledger tells events by.
    fn identity(provider: &str, sample: &Sample, token: &str) -> Vec<(Option<String>, Vec<String>, String)> {
        let (secret, rules) = (secret(provider), swarm_verify::provider(provider).unwrap());
        let request =
            Trigger::of(provider, &secret).unwrap().signed(sample.renewed(URL, NOW, token).request, NOW);
        let headers = request.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let arrived = Request { method: "POST", url: &request.url, headers: &headers, body: &request.body };
        let settings = Settings::new(rules, Secrets::from_list([&secret]));
        let events = rules.verify(&arrived, &settings, &Context::at(NOW)).unwrap().events;
        let known = events.into_iter().map(|event| {
            let id = event.id.filter(|_| !event.is_id_unsigned);
            let payload = if id.is_none() && event.fact.is_empty() {
                event.payload.into_owned()
            } else {
                String::new()
            };
            (id, event.fact, payload)
        });
        known.collect()
    }

    #[test]
    fn each_request_is_a_new_event() {
        let mut repeated = Vec::new();
        for provider in providers().iter().map(|provider| provider.name()) {
            for sample in Sample::all(provider) {
                let [one, two] = TOKENS.map(|token| identity(provider, &sample, token));
                assert!(!one.is_empty() || provider == "asana", "{provider} {}", sample.r#type);
                if one.iter().any(|event| two.contains(event)) {
                    repeated.push(format!("{provider} {}", sample.r#type));
                }
            }
        }
        assert!(repeated.is_empty(), "the same events again: {repeated:?}");
    }

    #[test]
    fn what_cannot_be_is_said_by_name() {
        assert!(Sample::find("github", Some("push")).is_ok());
        let error = Sample::find("github", Some("pull")).unwrap_err().to_string();
        assert!(error.contains("push"), "{error}");
        let unknown = Trigger::of("gitbub", "s").err().map(|error| error.to_string()).unwrap_or_default();
        assert!(unknown.contains("there is no provider 'gitbub'") && unknown.contains("github"), "{unknown}");
        assert_eq!(Trigger::of("paypal", "s").err(), Some(TriggerError::CannotSign("paypal".to_owned())));
        let trigger = Trigger::of("github", "s").unwrap();
        let push = Sample::find("github", None).unwrap().renewed(URL, NOW, TOKENS[0]).request;
        let stale = trigger.wrong(push.clone(), NOW, Wrong::Stale).unwrap_err().to_string();
        assert_eq!(stale, "the provider signs no time, so such a request would be taken like any other");
        assert!(with_field(push, "/a/b/c=1").is_err());
    }
}
