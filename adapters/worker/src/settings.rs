//! The settings of one provider in one deployment.

use serde_json::json;
use swarm_cloudflare::{Bindings, Misconfigured};
use swarm_domain::limits::PAYLOAD_BYTES_MAX;
use swarm_verify::Secrets;

use crate::LOG;

/// What a provider's requests are held against.
pub struct Settings {
    /// Secrets and tolerance, from `{PROVIDER}_WEBHOOK_SECRET` and `{PROVIDER}_TOLERANCE_SECONDS`.
    pub verification: swarm_verify::Settings,
    /// The largest body, in bytes, from `BODY_BYTES_MAX`.
    pub body_bytes_max: usize,
    /// Whose events they are when neither the path nor the provider's account says so.
    pub default_tenant: Option<String>,
}

impl Settings {
    /// Reads the settings of a provider. Unusable secrets count as none, and without secrets nothing verifies.
    pub fn load(bindings: &Bindings, provider: &str) -> Result<Self, Misconfigured> {
        let name = |suffix: &str| format!("{}_{suffix}", provider.to_ascii_uppercase());
        let text = bindings.var(&name("WEBHOOK_SECRET")).unwrap_or_default();
        let secrets = Secrets::parse(&text).unwrap_or_else(|error| {
            LOG.error("a secret cannot be used", json!({ "provider": provider, "error": error.to_string() }));
            Secrets::default()
        });
        let mut verification = swarm_verify::Settings::new(secrets);
        let tolerance = i64::try_from(verification.tolerance_seconds).unwrap_or(i64::MAX);
        let tolerance = bindings.number_var(&name("TOLERANCE_SECONDS"), tolerance)?;
        verification.tolerance_seconds = tolerance.unsigned_abs();
        let body_bytes_max = bindings.number_var("BODY_BYTES_MAX", PAYLOAD_BYTES_MAX as i64)?;
        Ok(Self {
            verification,
            body_bytes_max: usize::try_from(body_bytes_max)
                .unwrap_or(PAYLOAD_BYTES_MAX)
                .min(PAYLOAD_BYTES_MAX),
            default_tenant: bindings.var("DEFAULT_TENANT"),
        })
    }
}
