//! The providers that a deployment answers for: those that are known, and those that a scheme in its configuration describes.

use std::cell::RefCell;
use std::collections::HashMap;

use swarm_cloudflare::{Bindings, Misconfigured};
use swarm_verify::{Generic, Provider};

use crate::answer::Refusal;

thread_local! {
    /// An isolate's configuration never changes, so what was made of it lives as long as the isolate.
    static CONFIGURED: RefCell<HashMap<String, &'static Generic>> = RefCell::default();
}

/// The provider of a name that the deployment serves.
pub fn provider(name: &str, bindings: &Bindings) -> Result<&'static dyn Provider, Refusal> {
    let variable = format!("{}_SCHEME", name.to_ascii_uppercase());
    match (swarm_verify::provider(name), bindings.optional_json_var(&variable)?) {
        (Some(known), None) => Ok(known),
        (Some(_), Some(_)) => Err(misconfigured(format!("{variable}: {name} is known and needs no scheme"))),
        (None, Some(scheme)) => Ok(configured(name, &variable, &scheme)?),
        (None, None) => Err(misconfigured(format!(
            "PROVIDERS names {name}, which nobody knows; {variable} must say how to verify it"
        ))),
    }
}

fn configured(name: &str, variable: &str, scheme: &str) -> Result<&'static Generic, Refusal> {
    if let Some(provider) = CONFIGURED.with_borrow(|all| all.get(name).copied()) {
        return Ok(provider);
    }
    let provider =
        Generic::parse(name, scheme).map_err(|error| misconfigured(format!("{variable}: {error}")))?;
    let provider: &'static Generic = Box::leak(Box::new(provider));
    CONFIGURED.with_borrow_mut(|all| all.insert(name.to_owned(), provider));
    Ok(provider)
}

fn misconfigured(problem: String) -> Refusal {
    Misconfigured(problem).into()
}
