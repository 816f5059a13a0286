//! `/api/v1/events`, and `/api/v1/event` for one. An event is named by parameters and not by its path, since an id may be
//! `..` or hold a slash.

use swarm_cloudflare::{Bindings, D1Shard};
use swarm_domain::events::{EventFilter, EventFilterInput, Events};

use crate::answer::{Body, body};
use crate::call::Call;
use crate::query::Query;
use crate::refusal::Refusal;

const PARAMETERS: [&str; 9] =
    ["tenant", "id", "type", "topic", "status", "since", "until", "limit", "cursor"];
const FOLLOW_PARAMETERS: [&str; 7] = ["tenant", "type", "topic", "status", "since", "limit", "cursor"];

/// A page of events, newest first.
pub async fn list(call: &Call<'_>) -> Result<Body, Refusal> {
    let query = Query::parse(call.query, &PARAMETERS)?;
    body(&events(call).list(&filter(&query)?, query.limit()?, query.get("cursor")).await?)
}

/// What was recorded since a cursor, oldest first, and the cursor to go on with.
pub async fn follow(call: &Call<'_>) -> Result<Body, Refusal> {
    let query = Query::parse(call.query, &FOLLOW_PARAMETERS)?;
    body(&events(call).follow(&filter(&query)?, query.limit()?, query.get("cursor")).await?)
}

/// One event with the timeline of each of its dispatches.
pub async fn view(call: &Call<'_>) -> Result<Body, Refusal> {
    let (tenant, id) = name(call.query)?;
    body(&events(call).view(&tenant, &id).await?)
}

/// The payload of one, to the byte.
pub async fn payload(call: &Call<'_>, bindings: &Bindings) -> Result<Body, Refusal> {
    let (tenant, id) = name(call.query)?;
    let payload = events(call).payload(&bindings.blobs()?, &tenant, &id).await?;
    Ok(Box::<str>::from(payload).into())
}

fn events<'a>(call: &'a Call<'_>) -> Events<'a, D1Shard> {
    Events { ledger: &call.ledger }
}

fn filter(query: &Query) -> Result<EventFilter, Refusal> {
    let status = query.get("status").map(|states| states.split(',').map(str::to_owned).collect());
    Ok(EventFilter::parse(EventFilterInput {
        tenant: query.text("tenant"),
        id: query.text("id"),
        r#type: query.text("type"),
        topic: query.text("topic"),
        since: query.text("since"),
        until: query.text("until"),
        status,
    })?)
}

fn name(query: &str) -> Result<(String, String), Refusal> {
    let query = Query::parse(query, &["tenant", "id"])?;
    match (query.text("tenant"), query.text("id")) {
        (Some(tenant), Some(id)) => Ok((tenant, id)),
        _ => Err(Refusal::Invalid("`tenant` and `id` say which event is meant".to_owned())),
    }
}
