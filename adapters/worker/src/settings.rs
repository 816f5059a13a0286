//! The settings of one provider in one deployment.

use std::collections::BTreeMap;

use serde_json::json;
use swarm_cloudflare::{Bindings, Misconfigured};
use swarm_domain::event::is_tenant_id;
use swarm_domain::limits::PAYLOAD_BYTES_MAX;
use swarm_verify::{Provider, Secrets};

use crate::LOG;

/// What a provider's requests are held against.
pub struct Settings {
    /// Secrets, tolerance and the provider's own options, from `{PROVIDER}_WEBHOOK_SECRET`,
    /// `{PROVIDER}_TOLERANCE_SECONDS` and `{PROVIDER}_{OPTION}`.
    pub verification: swarm_verify::Settings,
    /// Which tenant an account of the provider is, from `{PROVIDER}_TENANTS`, a JSON object.
    tenants: BTreeMap<String, String>,
    accounts_are_tenants: bool,
    /// Whose events they are when neither the path nor the provider's account says so.
    pub default_tenant: Option<String>,
}

impl Settings {
    /// Reads the settings of a provider. Unusable secrets count as none, and without secrets nothing verifies.
    pub fn load(bindings: &Bindings, provider: &dyn Provider) -> Result<Self, Misconfigured> {
        let name = |suffix: &str| format!("{}_{suffix}", provider.name()).to_ascii_uppercase();
        let text = bindings.var(&name("WEBHOOK_SECRET")).unwrap_or_default();
        let secrets = Secrets::parse(&text).unwrap_or_else(|error| {
            LOG.error(
                "a secret cannot be used",
                json!({ "provider": provider.name(), "error": error.to_string() }),
            );
            Secrets::default()
        });
        let mut verification = swarm_verify::Settings::new(provider, secrets);
        let tolerance = i64::try_from(verification.tolerance_seconds).unwrap_or(i64::MAX);
        let tolerance = bindings.number_var(&name("TOLERANCE_SECONDS"), tolerance)?;
        verification.tolerance_seconds = tolerance.unsigned_abs();
        for option in provider.options() {
            match bindings.var(&name(option.name)) {
                Some(value) => verification = verification.with_option(option.name, value),
                None if option.is_required => {
                    let problem = format!("{} is not set: {}", name(option.name), option.help);
                    return Err(Misconfigured(problem));
                }
                None => {}
            }
        }
        Ok(Self {
            verification,
            tenants: tenants(bindings, &name("TENANTS"))?,
            accounts_are_tenants: provider.accounts_are_tenants(),
            default_tenant: bindings.var("DEFAULT_TENANT"),
        })
    }

    /// The tenant whose events an account's are, if the path does not say so.
    pub fn tenant_of(&self, account: Option<&str>) -> Option<String> {
        let mapped = account.and_then(|account| self.tenants.get(account));
        let itself = || account.filter(|_| self.accounts_are_tenants).map(str::to_owned);
        mapped.cloned().or_else(itself).or_else(|| self.default_tenant.clone())
    }
}

/// The largest body, in bytes, from `BODY_BYTES_MAX`.
pub fn body_bytes_max(bindings: &Bindings) -> Result<usize, Misconfigured> {
    let bytes = bindings.number_var("BODY_BYTES_MAX", PAYLOAD_BYTES_MAX as i64)?;
    Ok(usize::try_from(bytes).unwrap_or(PAYLOAD_BYTES_MAX).min(PAYLOAD_BYTES_MAX))
}

fn tenants(bindings: &Bindings, variable: &str) -> Result<BTreeMap<String, String>, Misconfigured> {
    let Some(text) = bindings.optional_json_var(variable)? else { return Ok(BTreeMap::new()) };
    let tenants: BTreeMap<String, String> = serde_json::from_str(&text).map_err(|_| {
        Misconfigured(format!("variable {variable} must be a JSON object of accounts and their tenants"))
    })?;
    match tenants.values().find(|tenant| !is_tenant_id(tenant)) {
        Some(tenant) => Err(Misconfigured(format!("variable {variable}: '{tenant}' is no tenant id"))),
        None => Ok(tenants),
    }
}
