//! From a provider's event to ours.

use swarm_client::Event;
use swarm_domain::ids::stable_event_id;
use swarm_domain::time::Timestamp;
use swarm_verify::VerifiedEvent;

use crate::route::Route;
use crate::settings::Settings;

/// Puts a verified event into the envelope. The tenant is the one in the path, else the provider's account (Stripe Connect),
/// else the deployment's default.
pub fn platform_event(
    route: &Route,
    settings: &Settings,
    verified: VerifiedEvent<'_>,
    now: Timestamp,
) -> Event {
    let provider = route.provider.name();
    let tenant_id =
        route.tenant.clone().or_else(|| verified.account.clone()).or_else(|| settings.default_tenant.clone());
    let payload_json = verified.payload.into_owned();
    let id = verified.id.unwrap_or_else(|| {
        stable_event_id(&[provider, tenant_id.as_deref().unwrap_or_default(), &payload_json])
    });
    Event {
        id,
        tenant_id,
        r#type: verified.event_type,
        timestamp: verified.occurred_at_unix_ms.map_or(now, Timestamp::from_unix_ms).rfc3339(),
        source: Some(source(provider, verified.livemode)),
        subject: verified.subject,
        version: verified.version,
        causation_id: verified.causation_id,
        actor: verified.account,
        payload_json,
        ..Event::default()
    }
}

/// Test-mode events must not be taken for real ones, so the mode is part of where an event comes from.
fn source(provider: &str, livemode: Option<bool>) -> String {
    match livemode {
        Some(true) => format!("{provider}/live"),
        Some(false) => format!("{provider}/test"),
        None => provider.to_owned(),
    }
}
