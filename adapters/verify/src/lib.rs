//! Decides whether a webhook request is what its provider signed, and which events it carries.
//!
//! Everything here is a function of its arguments: method, URL, headers, raw body bytes, secrets and the time
//! go in, [`Verified`] or a [`Rejection`] comes out. There is no clock, no network and no Worker API, so the
//! same code runs in an adapter Worker, in tests and in benches. What is left to the caller: the body limit,
//! tenants, ids for events whose provider gives none, and publishing.
//!
//! ```
//! use swarm_verify::{Context, Headers, Request, Secrets, Settings, provider, sign_stripe};
//!
//! let body = br#"{"id":"evt_1","object":"event","type":"invoice.paid","created":1767237942}"#;
//! let headers = Headers::from_iter([("Stripe-Signature", sign_stripe("whsec_example", 1767237943, body))]);
//! let request = Request { method: "POST", url: "https://hooks.example.com/webhook/stripe", headers: &headers, body };
//!
//! let stripe = provider("stripe").ok_or("unknown provider")?;
//! let settings = Settings::new(stripe, Secrets::parse("whsec_example")?);
//! let verified = stripe.verify(&request, &settings, &Context::at(1767237945))?;
//! assert_eq!(verified.events.first().map(|event| event.event_type.as_str()), Some("stripe.invoice.paid"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod authorization;
pub mod body;
pub mod certificate;
mod event;
pub mod form;
mod generic;
pub mod jwt;
pub mod key_cache;
pub mod keys;
pub mod limits;
mod provider;
pub mod providers;
pub mod public_key;
mod rejection;
mod request;
#[cfg(feature = "rust-crypto")]
mod rust_crypto;
mod secrets;
pub mod signature;
mod signing;
pub mod standard;
#[cfg(test)]
mod testing;
pub mod timed;

pub use event::{Answer, Verified, VerifiedEvent, platform_event_type};
pub use generic::{Generic, SchemeError};
pub use provider::{Context, Provider, ProviderOption, Settings};
pub use providers::{provider, providers};
pub use rejection::Rejection;
pub use request::{Headers, RepeatedHeader, Request};
#[cfg(feature = "rust-crypto")]
pub use rust_crypto::RustCrypto;
pub use secrets::{Secret, Secrets, SecretsError};
pub use signing::{Outgoing, Sign, sign_stripe, signer};
