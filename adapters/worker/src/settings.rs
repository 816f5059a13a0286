//! The settings of one provider in one deployment.

use std::collections::BTreeMap;

use serde_json::json;
use swarm_cloudflare::{Bindings, Misconfigured};
use swarm_domain::event::is_tenant_id;
use swarm_domain::limits::PAYLOAD_BYTES_MAX;
use swarm_domain::tenancy::Tenancy;
use swarm_verify::{Provider, Secrets};

use crate::LOG;

/// What a provider's requests are held against.
pub struct Settings {
    /// The provider's secrets, tolerance and own options, from `{PROVIDER}_WEBHOOK_SECRET`, `{PROVIDER}_TOLERANCE_SECONDS` and
    /// `{PROVIDER}_{OPTION}`.
    verification: swarm_verify::Settings,
    /// The secrets of tenants that have their own, from `{PROVIDER}_TENANT_SECRETS`.
    tenant_secrets: BTreeMap<String, Secrets>,
    /// The header that may say whose request it is, from `{PROVIDER}_TENANT_HEADER`.
    pub tenant_header: Option<String>,
    /// The place in an event that says whose it is, from `{PROVIDER}_TENANT_POINTER`.
    pub tenant_pointer: Option<String>,
    /// Whose events they are.
    pub tenancy: Tenancy,
}

impl Settings {
    /// Reads the settings of a provider. Unusable secrets count as none, and without secrets nothing verifies.
    pub fn load(bindings: &Bindings, provider: &dyn Provider) -> Result<Self, Misconfigured> {
        let name = |suffix: &str| [provider.name(), "_", suffix].concat().to_ascii_uppercase();
        let mut verification = swarm_verify::Settings::new(
            provider,
            secrets(&name("WEBHOOK_SECRET"), &bindings.var(&name("WEBHOOK_SECRET")).unwrap_or_default()),
        );
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
        let own = tenants(bindings, &name("TENANT_SECRETS"), |(tenant, _)| tenant)?.unwrap_or_default();
        let tenant_pointer = bindings.var(&name("TENANT_POINTER"));
        if tenant_pointer.as_ref().is_some_and(|pointer| !pointer.starts_with('/')) {
            return Err(Misconfigured(
                [&name("TENANT_POINTER"), " must be a JSON Pointer such as /data/shop"].concat(),
            ));
        }
        Ok(Self {
            verification,
            tenancy: Tenancy {
                mapping: tenants(bindings, &name("TENANTS"), |(_, tenant)| tenant)?,
                accounts_are_tenants: provider.accounts_are_tenants(),
                default_tenant: bindings.var("DEFAULT_TENANT"),
                with_secrets: own.keys().cloned().collect(),
            },
            tenant_secrets: own
                .into_iter()
                .map(|(tenant, text)| {
                    let secrets = secrets(&name("TENANT_SECRETS"), &text);
                    (tenant, secrets)
                })
                .collect(),
            tenant_header: bindings.var(&name("TENANT_HEADER")),
            tenant_pointer,
        })
    }

    /// What a request is verified by, if it is this tenant's: the tenant's own secrets if it has any, and else the provider's.
    pub fn verification_of(&self, tenant: Option<&str>) -> swarm_verify::Settings {
        let mut verification = self.verification.clone();
        if let Some(own) = tenant.and_then(|tenant| self.tenant_secrets.get(tenant)) {
            verification.secrets = own.clone();
        }
        verification
    }
}

/// The secrets in a text; none if they cannot be used, which the log says, but not what they are.
fn secrets(variable: &str, text: &str) -> Secrets {
    Secrets::parse(text).unwrap_or_else(|error| {
        LOG.error("a secret cannot be used", json!({ "variable": variable, "error": error.to_string() }));
        Secrets::default()
    })
}

/// The largest body, in bytes, from `BODY_BYTES_MAX`.
pub fn body_bytes_max(bindings: &Bindings) -> Result<usize, Misconfigured> {
    let bytes = bindings.number_var("BODY_BYTES_MAX", PAYLOAD_BYTES_MAX as i64)?;
    Ok(usize::try_from(bytes).unwrap_or(PAYLOAD_BYTES_MAX).min(PAYLOAD_BYTES_MAX))
}

/// A JSON object of texts, in which the names or the values are tenants.
fn tenants(
    bindings: &Bindings,
    variable: &str,
    tenant_of: for<'a> fn((&'a String, &'a String)) -> &'a String,
) -> Result<Option<BTreeMap<String, String>>, Misconfigured> {
    let Some(text) = bindings.optional_json_var(variable)? else { return Ok(None) };
    let pairs: BTreeMap<String, String> = serde_json::from_str(&text)
        .map_err(|_| Misconfigured(format!("variable {variable} must be a JSON object of texts")))?;
    match pairs.iter().map(tenant_of).find(|tenant| !is_tenant_id(tenant)) {
        Some(tenant) => Err(Misconfigured(format!("variable {variable}: '{tenant}' is no tenant id"))),
        None => Ok(Some(pairs)),
    }
}
