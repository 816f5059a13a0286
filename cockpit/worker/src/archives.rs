//! `/api/v1/archives`: what retention has moved out of the ledger, and its way back.

use serde::{Deserialize, Serialize};
use serde_json::json;
use swarm_cloudflare::{Bindings, D1Shard, R2Blobs};
use swarm_domain::limits::ARCHIVES_SHOWN_MAX;
use swarm_domain::retention::{RestoreError, Restorer};
use swarm_domain::topic::Topic;

use crate::LOG;
use crate::answer::{Body, body};
use crate::call::Call;
use crate::query::Query;
use crate::refusal::Refusal;

const PARAMETERS: [&str; 2] = ["day", "cursor"];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    archives: Vec<Archive>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize)]
struct Archive {
    key: String,
    bytes: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    key: String,
    #[serde(default)]
    topics: Vec<String>,
}

/// What a restore has done.
#[derive(Serialize)]
struct Done {
    restored: u64,
    present: u64,
    replayed: u64,
}

/// The objects of a day, in the order of their keys.
pub async fn list(call: &Call<'_>, bindings: &Bindings) -> Result<Body, Refusal> {
    let query = Query::parse(call.query, &PARAMETERS)?;
    let day = query.get("day").ok_or_else(|| Refusal::Invalid("`day` is missing".to_owned()))?;
    let cursor = query.get("cursor").unwrap_or_default();
    let blobs = bindings.blobs()?;
    let listing = restorer(call, &blobs).list(day, cursor, ARCHIVES_SHOWN_MAX).await?;
    let last = listing.objects.last().map(|object| object.key.clone());
    let archives = listing.objects.into_iter().map(|object| Archive { key: object.key, bytes: object.bytes });
    body(&Page { archives: archives.collect(), next_cursor: last.filter(|_| listing.more) })
}

/// Puts the events of an object back, and has them sent to the topics that the operator names.
pub async fn restore(call: &Call<'_>, bindings: &Bindings) -> Result<Body, Refusal> {
    let wanted: Wanted = call.body().await?;
    let topics = wanted.topics.into_iter().map(|name| topic(name, bindings));
    let topics = topics.collect::<Result<Vec<_>, _>>()?;
    let blobs = bindings.blobs()?;
    let done = restorer(call, &blobs).restore(&wanted.key, &topics, &call.operation(None)).await?;
    call.log("restore", &wanted.key);
    body(&Done { restored: done.restored, present: done.present, replayed: done.replayed })
}

/// A topic that has a queue; to any other one the sweeper could not send.
fn topic(name: String, bindings: &Bindings) -> Result<Topic, Refusal> {
    let known = Topic::try_from(name.clone()).ok().filter(|topic| bindings.require_producer(topic).is_ok());
    known.ok_or_else(|| {
        let shown: String = name.chars().take(40).collect();
        Refusal::Invalid(format!("`topics` names '{shown}', which has no queue here"))
    })
}

fn restorer<'a>(call: &'a Call<'_>, blobs: &'a R2Blobs) -> Restorer<'a, D1Shard, R2Blobs> {
    Restorer { ledger: &call.ledger, blobs }
}

impl From<RestoreError> for Refusal {
    fn from(error: RestoreError) -> Self {
        let message = error.to_string();
        match error {
            RestoreError::Invalid(_) => Self::Invalid(message),
            RestoreError::NotFound => Self::NotFound(message),
            RestoreError::Damaged { .. } => Self::Conflict(message),
            RestoreError::Blob(_) | RestoreError::Sql(_) => {
                LOG.error("an archive could not be restored", json!({ "error": message }));
                Self::Unavailable
            }
        }
    }
}
