//! `/api/v1/replays`.

use serde::{Deserialize, Serialize};
use serde_json::json;
use swarm_cloudflare::D1Shard;
use swarm_cloudflare::clock::random_token;
use swarm_domain::incident::FilterInput;
use swarm_domain::limits::REPLAY_CALL_MS_MAX;
use swarm_domain::replay::{Job, JobRequest, Jobs, Of};

use crate::answer::{Body, body};
use crate::call::Call;
use crate::refusal::Refusal;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Wanted {
    of: Of,
    #[serde(default)]
    filter: FilterInput,
    #[serde(default)]
    all: bool,
    topics: Option<Vec<String>>,
    rate_per_second: Option<u32>,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Serialize)]
struct Newest {
    replays: Vec<Job>,
}

/// The newest replays.
pub async fn list(call: &Call<'_>) -> Result<Body, Refusal> {
    body(&Newest { replays: jobs(call).list().await? })
}

/// One replay.
pub async fn view(call: &Call<'_>, id: &str) -> Result<Body, Refusal> {
    body(&jobs(call).view(id).await?)
}

/// Counts what a replay would move, and records it unless the count is all that was wanted.
pub async fn create(call: &Call<'_>) -> Result<Body, Refusal> {
    let wanted: Wanted = call.body().await?;
    let request =
        JobRequest::parse(wanted.of, wanted.filter, wanted.all, wanted.topics, wanted.rate_per_second)?;
    let operation = call.operation(None);
    if wanted.dry_run {
        return body(&json!({ "count": jobs(call).count(&request, &operation).await? }));
    }
    let job = jobs(call).create(&request, &operation).await?;
    call.log("replay_many", &job.replay_id);
    body(&job)
}

/// Works on a replay for a few seconds, so that an operator who watches need not wait for cron.
pub async fn run(call: &Call<'_>, id: &str) -> Result<Body, Refusal> {
    call.no_body().await?;
    let deadline = call.now.plus_ms(REPLAY_CALL_MS_MAX);
    body(&call.replayer().advance(id, &random_token(), deadline).await?)
}

/// Stops a replay.
pub async fn cancel(call: &Call<'_>, id: &str) -> Result<Body, Refusal> {
    call.no_body().await?;
    let job = jobs(call).cancel(id, &call.operation(None)).await?;
    call.log("cancel", id);
    body(&job)
}

fn jobs<'a>(call: &'a Call<'_>) -> Jobs<'a, D1Shard> {
    Jobs { ledger: &call.ledger }
}
