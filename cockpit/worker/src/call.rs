//! One request of an operator, with what its handler needs.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use swarm_cloudflare::clock::random_token;
use swarm_cloudflare::{Bindings, D1Shard, SystemClock, TopicQueues, body};
use swarm_domain::incident::Operation;
use swarm_domain::ledger::Ledger;
use swarm_domain::ports::Clock;
use swarm_domain::replay::Replayer;
use swarm_domain::time::Timestamp;
use web_sys::Request;

use crate::LOG;
use crate::auth::Operator;
use crate::refusal::Refusal;

/// The largest body.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// A request whose sender is known and may send it.
pub struct Call<'a> {
    /// Who sends it.
    pub operator: &'a Operator,
    /// Its query.
    pub query: &'a str,
    /// The incidents and replays.
    pub ledger: Ledger<D1Shard>,
    /// Now.
    pub now: Timestamp,
    request: &'a Request,
    queues: TopicQueues,
    in_transit_deadline_ms: i64,
    operation_id: String,
}

impl<'a> Call<'a> {
    /// A request with what the deployment has for it.
    pub fn new(
        request: &'a Request,
        query: &'a str,
        operator: &'a Operator,
        bindings: &Bindings,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            operator,
            query,
            ledger: bindings.ledger()?,
            now: SystemClock.now(),
            request,
            queues: bindings.queues(),
            in_transit_deadline_ms: bindings.in_transit_deadline_ms()?,
            operation_id: random_token(),
        })
    }

    /// The body, of which every field is known. No body is an empty object.
    pub async fn body<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        let bytes = body::read(self.request, BODY_BYTES_MAX).await?;
        let text =
            str::from_utf8(&bytes).map_err(|_| Refusal::Invalid("the body is not UTF-8".to_owned()))?;
        let text = if text.trim_ascii().is_empty() { "{}" } else { text };
        serde_json::from_str(text).map_err(|error| Refusal::Invalid(format!("the body: {error}")))
    }

    /// Makes sure that the body says nothing.
    pub async fn no_body(&self) -> Result<(), Refusal> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Nothing {}
        self.body::<Nothing>().await.map(|_| ())
    }

    /// What the operator does, under an id of its own.
    pub fn operation<'b>(&'b self, note: Option<&'b str>) -> Operation<'b> {
        Operation { id: &self.operation_id, actor: &self.operator.name, note, now: self.now }
    }

    /// What replays go through.
    pub fn replayer(&self) -> Replayer<'_, D1Shard, TopicQueues, SystemClock> {
        Replayer {
            ledger: &self.ledger,
            queues: &self.queues,
            clock: &SystemClock,
            in_transit_deadline_ms: self.in_transit_deadline_ms,
        }
    }

    /// Tells the Worker's log what was done; the ledger's own log has it too, for good.
    pub fn log(&self, action: &str, id: &str) {
        LOG.info(
            "an operator has acted",
            json!({ "operator": self.operator.name, "action": action, "id": id }),
        );
    }
}
