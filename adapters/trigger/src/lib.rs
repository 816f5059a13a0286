//! Test events: requests of the shape that a provider sends, with new ids and present times, signed as it signs, or wrong in a way
//! that must be noticed.
//!
//! Nothing here sends anything, and time and randomness are arguments: `cargo xtask trigger` and `swarm trigger` bring them.
//!
//! ```
//! use swarm_trigger::{Sample, Trigger};
//!
//! let trigger = Trigger::of("github", "a secret of the webhook")?;
//! let sample = Sample::find("github", Some("push"))?;
//! let new = sample.renewed("https://hooks.example.com/webhook/github", 1767237945, "5f3a9c0e7b1d2846a0b1c2d3");
//! let request = trigger.signed(new.request, 1767237945);
//! assert!(request.headers.iter().any(|(name, _)| *name == "x-hub-signature-256"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod field;
mod renew;
mod sample;

pub use field::{FieldError, with_field};
pub use sample::{NoSample, Renewed, Sample};

use swarm_verify::{
    Context, Headers, Outgoing, Provider, Request, Secrets, Settings, Sign, provider, providers, signer,
};

/// How old a stale signature is. No provider's tolerance is as long by default.
const STALE_SECONDS: i64 = 30 * 24 * 60 * 60;
/// What a forger signs with.
const OTHER_SECRET: &str = "f06e2f1bd0d3f0ee7f9c77a0b5aee0b0c1d2e3f4a5b6978869504132a1b2c3d4";

/// What is wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It is signed with another secret.
    Signature,
    /// It was signed a month ago.
    Stale,
    /// Its body was changed after it was signed.
    Body,
}

/// Why there is no such request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TriggerError {
    /// Nobody knows the provider.
    #[error("there is no provider '{0}'; there are {1}")]
    UnknownProvider(String, String),
    /// Its key is not shared.
    #[error("only {0} itself can sign its requests; its key is not shared")]
    CannotSign(String),
    /// What it signs does not cover what would be wrong.
    #[error("{0}, so such a request would be taken like any other")]
    NotCovered(&'static str),
}

/// A provider that can be played.
pub struct Trigger<'a> {
    provider: &'static dyn Provider,
    sign: Sign,
    secret: &'a str,
}

impl<'a> Trigger<'a> {
    /// The provider of this name, with the secret that the gateway has.
    ///
    /// # Errors
    /// [`TriggerError`] when there is none, or when only it can sign.
    pub fn of(name: &str, secret: &'a str) -> Result<Self, TriggerError> {
        let Some(provider) = provider(name) else {
            let names: Vec<_> = providers().iter().map(|provider| provider.name()).collect();
            return Err(TriggerError::UnknownProvider(name.to_owned(), names.join(", ")));
        };
        let sign = signer(name).ok_or_else(|| TriggerError::CannotSign(name.to_owned()))?;
        Ok(Self { provider, sign, secret })
    }

    /// The request as the provider would sign it.
    #[must_use]
    pub fn signed(&self, request: Outgoing, now_unix: i64) -> Outgoing {
        (self.sign)(request, self.secret, now_unix)
    }

    /// The request with something wrong.
    ///
    /// # Errors
    /// [`TriggerError::NotCovered`] when the provider's scheme would let it through: who signs no time has nothing that is stale.
    pub fn wrong(&self, request: Outgoing, now_unix: i64, wrong: Wrong) -> Result<Outgoing, TriggerError> {
        let (made, not_covered) = match wrong {
            Wrong::Signature => ((self.sign)(request, OTHER_SECRET, now_unix), "the provider has no secret"),
            Wrong::Stale => (self.signed(request, now_unix - STALE_SECONDS), "the provider signs no time"),
            Wrong::Body => (changed(self.signed(request, now_unix)), "the provider does not sign the body"),
        };
        if self.is_taken(&made, now_unix) { Err(TriggerError::NotCovered(not_covered)) } else { Ok(made) }
    }

    /// Whether a gateway with this secret would take the request.
    #[must_use]
    pub fn is_taken(&self, request: &Outgoing, now_unix: i64) -> bool {
        let headers: Headers = request.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let arrived =
            Request { method: request.method, url: &request.url, headers: &headers, body: &request.body };
        let settings = Settings::new(self.provider, Secrets::parse(self.secret).unwrap_or_default());
        self.provider.verify(&arrived, &settings, &Context::at(now_unix)).is_ok()
    }
}

/// The last letter or digit is another one.
fn changed(mut request: Outgoing) -> Outgoing {
    if let Some(digit) = request.body.iter_mut().rev().find(|byte| byte.is_ascii_alphanumeric()) {
        *digit ^= 1;
    }
    request
}
