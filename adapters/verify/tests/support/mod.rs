//! The conformance corpus: signed requests with the verdicts of the providers' own SDKs, and what is done with them.

#![allow(dead_code, reason = "every test binary uses another part of it")]

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::Value;
use swarm_verify::{
    Context, Headers, Provider, Rejection, Request, Secrets, Settings, Verified, VerifiedEvent, provider,
};

macro_rules! corpus {
    ($($name:literal,)*) => {
        /// Name, cases and page of each provider.
        pub const CORPUS: &[(&str, &str, &str)] = &[
            $((
                $name,
                include_str!(concat!("../corpus/", $name, ".jsonl")),
                include_str!(concat!("../../../providers/", $name, ".md")),
            ),)*
        ];
    };
}

corpus![
    "adyen",
    "asana",
    "aws_sns",
    "bitbucket",
    "calendly",
    "coinbase_commerce",
    "discord",
    "docusign",
    "dropbox",
    "github",
    "gitlab",
    "google_pubsub",
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
    "paypal",
    "plaid",
    "postmark",
    "razorpay",
    "sendgrid",
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

/// One line of the corpus.
#[derive(Clone, Debug)]
pub struct Case(pub Value);

impl Case {
    pub fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or_else(|| panic!("{field} is not text"))
    }

    pub fn is_core(&self) -> bool {
        self.text("class") == "core"
    }

    pub fn provider(&self) -> &'static dyn Provider {
        provider(self.text("provider")).unwrap()
    }

    /// The endpoint as a user configures it.
    pub fn settings(&self) -> Settings {
        let configured = match &self.0["secret"] {
            Value::Null => String::new(),
            // A text of several words is one secret here, which is configured as a list (adapters/README.md).
            Value::String(one) if one.trim().contains(char::is_whitespace) => {
                Value::from(vec![one.as_str()]).to_string()
            }
            Value::String(one) => one.clone(),
            list => list.to_string(),
        };
        let provider = self.provider();
        let settings = Settings::new(provider, Secrets::parse(&configured).unwrap_or_default());
        let config = self.0["config"].as_object().cloned().unwrap_or_default();
        config.iter().fold(settings, |settings, (name, value)| {
            let known = provider.options().iter().find(|option| option.name == name);
            let option = known.unwrap_or_else(|| panic!("{} has no option {name}", provider.name()));
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            settings.with_option(option.name, value)
        })
    }

    /// What a download would bring, by its address or by the id that is posted to it.
    pub fn download(&self, url: &str, body: Option<&str>) -> Option<String> {
        let remote = self.0["remote"].as_object()?;
        let by_id = |body: &str| {
            remote.iter().find(|(id, _)| body.contains(&format!("\"{id}\""))).map(|(_, key)| key)
        };
        let found = remote.get(url).or_else(|| by_id(body?))?;
        Some(found.as_str().map_or_else(|| found.to_string(), str::to_owned))
    }

    /// The request as it arrives.
    pub fn arriving(&self) -> Arriving {
        let fields = self.0["headers"].as_object().unwrap();
        let values = |value: &Value| match value {
            Value::Array(values) => values.iter().map(|value| value.as_str().unwrap().to_owned()).collect(),
            one => vec![one.as_str().unwrap().to_owned()],
        };
        let headers = fields
            .iter()
            .flat_map(|(name, value)| values(value).into_iter().map(move |value| (name.clone(), value)))
            .collect();
        Arriving {
            method: self.text("method").to_owned(),
            url: self.text("url").to_owned(),
            headers,
            body: BASE64.decode(self.text("body_base64")).unwrap(),
        }
    }

    /// The verdict about a request at this case's endpoint, given to a function because it borrows from the request.
    pub fn with_verdict_of<T>(
        &self,
        arriving: &Arriving,
        look: impl FnOnce(Result<Verified<'_>, Rejection>) -> T,
    ) -> T {
        let headers: Headers = arriving.headers.iter().cloned().collect();
        let Arriving { method, url, body, .. } = arriving;
        let request = Request { method, url, headers: &headers, body };
        let (provider, settings) = (self.provider(), self.settings());
        let verdict = provider.key_source(&request, &settings).and_then(|source| {
            let key = source.and_then(|source| self.download(&source.url, source.body.as_deref()));
            let context = Context::at(self.0["now_unix"].as_i64().unwrap()).with_key(key.as_deref());
            provider.verify(&request, &settings, &context)
        });
        look(verdict)
    }

    /// The verdict about the case's own request.
    pub fn with_verdict<T>(&self, look: impl FnOnce(Result<Verified<'_>, Rejection>) -> T) -> T {
        self.with_verdict_of(&self.arriving(), look)
    }

    /// The identities of the events in a request that passes, else why it is refused.
    pub fn identities(&self, arriving: &Arriving) -> Result<Vec<Identity>, Rejection> {
        self.with_verdict_of(arriving, |verdict| Ok(verdict?.events.into_iter().map(identity).collect()))
    }

    /// `accept`, or the reason for refusing.
    pub fn outcome(&self) -> &'static str {
        self.with_verdict(|verdict| verdict.map_or_else(|rejection| rejection.reason(), |_| "accept"))
    }
}

/// A request as it arrives.
#[derive(Clone, Debug)]
pub struct Arriving {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// What the ledger tells events by: the id, unless it is not signed; what else makes another fact; the payload, if there is
/// nothing else.
pub type Identity = (Option<String>, Vec<String>, Option<String>);

pub fn identity(event: VerifiedEvent<'_>) -> Identity {
    let id = event.id.filter(|_| !event.is_id_unsigned);
    let payload = (id.is_none() && event.fact.is_empty()).then(|| event.payload.into_owned());
    (id, event.fact, payload)
}

/// Each variant of `bytes` in which one bit is flipped.
pub fn flipped(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len() * 8).map(|bit| {
        let mut changed = bytes.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        changed
    })
}

/// Text of bytes of any value, each as the character of that number, which is how header values arrive in Workers.
pub fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

pub fn cases(text: &str) -> Vec<Case> {
    text.lines().map(|line| Case(serde_json::from_str(line).unwrap())).collect()
}
