//! `/api/v1/incidents`.

use serde::Deserialize;
use serde_json::json;
use swarm_domain::incident::{Filter, FilterInput, Operations};

use crate::LOG;
use crate::answer::{Body, body};
use crate::call::Call;
use crate::query::Query;
use crate::refusal::Refusal;

const PARAMETERS: [&str; 10] =
    ["status", "tenant", "topic", "event", "type", "error", "since", "until", "limit", "cursor"];

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Decision {
    note: Option<String>,
}

/// A page of incidents, newest first.
pub async fn list(call: &Call<'_>) -> Result<Body, Refusal> {
    let query = Query::parse(call.query, &PARAMETERS)?;
    let status = query.get("status").map(|states| states.split(',').map(str::to_owned).collect());
    let filter = Filter::parse(FilterInput {
        tenant: query.text("tenant"),
        topic: query.text("topic"),
        event: query.text("event"),
        r#type: query.text("type"),
        error: query.text("error"),
        since: query.text("since"),
        until: query.text("until"),
        status,
    })?;
    body(&operations(call).list(&filter, query.limit()?, query.get("cursor")).await?)
}

/// One incident with its message and its log.
pub async fn view(call: &Call<'_>, id: &str) -> Result<Body, Refusal> {
    body(&operations(call).view(id).await?)
}

/// Takes an incident up.
pub async fn triage(call: &Call<'_>, id: &str) -> Result<Body, Refusal> {
    let decision: Decision = call.body().await?;
    let incident = operations(call).triage(id, &call.operation(decision.note.as_deref())).await?;
    call.log("triage", id);
    body(&incident)
}

/// Lets an incident rest.
pub async fn ignore(call: &Call<'_>, id: &str) -> Result<Body, Refusal> {
    let decision: Decision = call.body().await?;
    let incident = operations(call).ignore(id, &call.operation(decision.note.as_deref())).await?;
    call.log("ignore", id);
    body(&incident)
}

/// Sends an incident's event once more.
pub async fn replay(call: &Call<'_>, id: &str) -> Result<Body, Refusal> {
    call.no_body().await?;
    let replayed = call.replayer().replay_one(id, &call.operation(None)).await?;
    call.log("replay", id);
    if let Some(error) = replayed.unrecorded {
        LOG.error("a send could not be recorded", json!({ "incidentId": id, "error": error.to_string() }));
    }
    body(&replayed.incident)
}

fn operations<'a>(call: &'a Call<'_>) -> Operations<'a, swarm_cloudflare::D1Shard> {
    Operations { ledger: &call.ledger }
}
