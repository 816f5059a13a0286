//! From a provider's event to ours.

use swarm_client::Event;
use swarm_domain::identity::{Fact, ledger_id};
use swarm_domain::time::Timestamp;
use swarm_verify::body::text_at;
use swarm_verify::{Rejection, VerifiedEvent};

use crate::settings::Settings;

/// Puts a verified event into the envelope. `known` is the tenant of its request, if that was known before.
pub fn platform_event(
    provider: &str,
    settings: &Settings,
    known: Option<&str>,
    verified: VerifiedEvent<'_>,
    now: Timestamp,
) -> Result<Event, Rejection> {
    let pointed = settings.tenant_pointer.as_ref().and_then(|pointer| text_at(&verified.payload, pointer));
    let tenant = settings.tenancy.of_event(known, pointed.as_deref(), verified.account.as_deref());
    let tenant_id = tenant.map_err(|_| Rejection::SignatureForeign("its tenant has a secret of its own"))?;
    let also: Vec<&str> = verified.fact.iter().map(String::as_str).collect();
    let fact = Fact {
        provider,
        tenant_id: tenant_id.as_deref().unwrap_or_default(),
        id: verified.id.as_deref().filter(|_| !verified.is_id_unsigned),
        also: &also,
        payload: &verified.payload,
    };
    Ok(Event {
        id: ledger_id(&fact),
        tenant_id,
        r#type: verified.event_type,
        timestamp: verified.occurred_at_unix_ms.map_or(now, Timestamp::from_unix_ms).rfc3339(),
        source: Some(source(provider, verified.livemode)),
        subject: verified.subject,
        version: verified.version,
        causation_id: verified.causation_id,
        actor: verified.account,
        payload_json: verified.payload.into_owned(),
        ..Event::default()
    })
}

/// Test-mode events must not be taken for real ones, so the mode is part of where an event comes from.
fn source(provider: &str, livemode: Option<bool>) -> String {
    match livemode {
        Some(true) => [provider, "/live"].concat(),
        Some(false) => [provider, "/test"].concat(),
        None => provider.to_owned(),
    }
}
