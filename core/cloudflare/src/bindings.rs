//! Reading a Worker's environment: bindings by the names of the contract, and variables. What is missing is named together
//! with the place to add it.

use swarm_domain::ledger::{Ledger, shard_binding};
use swarm_domain::limits::IN_TRANSIT_DEADLINE_MS_DEFAULT;
use swarm_domain::ports::Sql;
use swarm_domain::topic::Topic;
use wasm_bindgen::{JsCast, JsValue};
use worker_sys::D1Database;

use crate::{D1Shard, R2Blobs, TopicQueues, js};

/// Something in the Worker's configuration is missing or wrong. Nothing can work until somebody deploys a better one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("misconfigured: {0}")]
pub struct Misconfigured(pub String);

/// A Worker's environment.
#[derive(Clone, Debug)]
pub struct Bindings {
    env: JsValue,
}

impl Bindings {
    /// The environment that the runtime has handed over.
    pub fn new(env: JsValue) -> Self {
        Self { env }
    }

    /// The ledger: `LEDGER`, or `LEDGER_00`, `LEDGER_01`, … without a gap.
    pub fn ledger(&self) -> Result<Ledger<D1Shard>, Misconfigured> {
        self.ledger_of(D1Shard::new)
    }

    /// The ledger, with what a Worker makes of each of its databases.
    pub fn ledger_of<S: Sql>(&self, shard: impl Fn(D1Database) -> S) -> Result<Ledger<S>, Misconfigured> {
        if let Some(only) = self.binding("LEDGER") {
            return Ok(Ledger::new(shard(only.unchecked_into()), Vec::new()));
        }
        let mut shards = (0..)
            .map_while(|number| self.binding(&shard_binding(number, usize::MAX)))
            .map(|database| shard(database.unchecked_into()));
        let first =
            shards.next().ok_or_else(|| missing("D1 database", "LEDGER (or LEDGER_00, LEDGER_01, …)"))?;
        Ok(Ledger::new(first, shards.collect()))
    }

    /// The bucket `BLOBS`, where large payloads are.
    pub fn blobs(&self) -> Result<R2Blobs, Misconfigured> {
        self.bucket("BLOBS")
    }

    /// The bucket with this binding.
    pub fn bucket(&self, name: &str) -> Result<R2Blobs, Misconfigured> {
        let bucket = self.binding(name).ok_or_else(|| missing("R2 bucket", name))?;
        Ok(R2Blobs::new(bucket.unchecked_into()))
    }

    /// Every queue that is bound.
    pub fn queues(&self) -> TopicQueues {
        TopicQueues::new(self.env.clone())
    }

    /// Refuses a topic that this Worker could not send to.
    pub fn require_producer(&self, topic: &Topic) -> Result<(), Misconfigured> {
        match self.binding(&topic.binding()) {
            Some(_) => Ok(()),
            None => Err(missing("queue producer", &format!("{} for topic {topic}", topic.binding()))),
        }
    }

    /// A variable or secret.
    pub fn var(&self, name: &str) -> Option<String> {
        self.binding(name)?.as_string()
    }

    /// A variable that must be there.
    pub fn required_var(&self, name: &str) -> Result<String, Misconfigured> {
        self.var(name).ok_or_else(|| missing("variable", name))
    }

    /// A variable that is JSON, as text, whether the config gives it as text or as JSON itself.
    pub fn json_var(&self, name: &str) -> Result<String, Misconfigured> {
        self.optional_json_var(name)?.ok_or_else(|| missing("variable", name))
    }

    /// A variable that is JSON and need not be there.
    pub fn optional_json_var(&self, name: &str) -> Result<Option<String>, Misconfigured> {
        let Some(value) = self.binding(name) else { return Ok(None) };
        let json = || js_sys::JSON::stringify(&value).ok().map(String::from);
        let text = value.as_string().or_else(json);
        text.map(Some).ok_or_else(|| Misconfigured(format!("variable {name} is not JSON")))
    }

    /// A variable that is a whole number, or its default.
    pub fn number_var(&self, name: &str, default: i64) -> Result<i64, Misconfigured> {
        let Some(text) = self.var(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| *number > 0);
        number.ok_or_else(|| {
            Misconfigured(format!("variable {name} must be a positive whole number, not '{text}'"))
        })
    }

    /// How long after `enqueued` a dispatch is looked at again: `IN_TRANSIT_DEADLINE_SECONDS`, by default a day.
    pub fn in_transit_deadline_ms(&self) -> Result<i64, Misconfigured> {
        let default = IN_TRANSIT_DEADLINE_MS_DEFAULT / 1000;
        Ok(self.number_var("IN_TRANSIT_DEADLINE_SECONDS", default)?.saturating_mul(1000))
    }

    /// The service with this binding, if there is one.
    pub fn service(&self, name: &str) -> Option<JsValue> {
        self.binding(name)
    }

    fn binding(&self, name: &str) -> Option<JsValue> {
        Some(js::property(&self.env, name)).filter(|value| !value.is_undefined() && !value.is_null())
    }
}

fn missing(kind: &str, what: &str) -> Misconfigured {
    Misconfigured(format!("{kind} {what} is not bound; add it to the Worker's wrangler config"))
}
