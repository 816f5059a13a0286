//! The queue handler of a consumer Worker: from the runtime's batch to verdicts and back.

use serde_json::{Value, json};
use swarm_cloudflare::clock::random_token;
use swarm_cloudflare::inbox::Inbox;
use swarm_cloudflare::log::Log;
use swarm_cloudflare::{Bindings, D1Shard, Misconfigured, R2Blobs, SystemClock, TopicQueues};
use swarm_domain::ledger::Ledger;
use swarm_domain::topic::Topic;
use wasm_bindgen::JsValue;

use crate::consume::{Consumer, Incoming};
use crate::handler::Handler;
use crate::verdict::{Disposition, End, Verdict};

/// How long messages wait for a better deployment. With five retries that is more than an hour.
const MISCONFIGURED_RETRY_SECONDS: u32 = 900;

/// Serves a batch. `handler` makes the handler from the Worker's environment.
///
/// An error is thrown at the runtime only for a batch that is not its own; nothing was done then. Everything else is told to
/// the queue message by message.
pub async fn serve<H: Handler>(
    batch: JsValue,
    env: JsValue,
    handler: impl FnOnce(&Bindings) -> Result<H, Misconfigured>,
    log: &Log,
) -> Result<(), JsValue> {
    let mut inbox = Inbox::open(batch, log)?;
    let bindings = Bindings::new(env);
    let configured = Settings::read(&bindings, &inbox.queue).and_then(|s| Ok((s, handler(&bindings)?)));
    match configured {
        Ok((settings, handler)) => {
            let messages = take_messages(&mut inbox, log);
            let verdicts = settings.consume(&handler, messages).await;
            inbox.answer(verdicts.iter().map(|verdict| verdict.disposition));
            report(log, &settings.topic, &verdicts);
        }
        Err(Misconfigured(problem)) => {
            inbox.retry_all(|_| MISCONFIGURED_RETRY_SECONDS);
            let fields = json!({ "queue": inbox.queue, "messages": inbox.letters.len(), "error": problem });
            log.error("cannot consume; the messages will come again", fields);
        }
    }
    Ok(())
}

/// What the kit reads of a Worker's configuration.
struct Settings {
    topic: Topic,
    max_retries: u32,
    ledger: Ledger<D1Shard>,
    queues: TopicQueues,
    blobs: R2Blobs,
}

impl Settings {
    fn read(bindings: &Bindings, queue: &str) -> Result<Self, Misconfigured> {
        let topic = Topic::try_from(bindings.required_var("TOPIC")?)
            .map_err(|error| Misconfigured(format!("variable TOPIC: {error}")))?;
        if topic.queue() != queue {
            return Err(Misconfigured(format!("TOPIC is {topic}, but the batch comes from queue {queue}")));
        }
        let max_retries = bindings.required_var("QUEUE_MAX_RETRIES")?.parse().map_err(|_| {
            Misconfigured("variable QUEUE_MAX_RETRIES must be the queue's max_retries".to_owned())
        })?;
        let (ledger, blobs) = (bindings.ledger()?, bindings.blobs()?);
        Ok(Self { topic, max_retries, ledger, queues: bindings.queues(), blobs })
    }

    async fn consume<H: Handler>(&self, handler: &H, messages: Vec<Incoming>) -> Vec<Verdict> {
        let consumer = Consumer {
            ledger: &self.ledger,
            queues: &self.queues,
            blobs: &self.blobs,
            clock: &SystemClock,
            handler,
            topic: &self.topic,
            max_retries: self.max_retries,
        };
        consumer.consume(messages, &random_token()).await
    }
}

/// The messages that are text. What is not has no room in a letter, so it is left to the queue, which moves it to the dead
/// letters by itself after its last attempt, with every byte.
fn take_messages(inbox: &mut Inbox, log: &Log) -> Vec<Incoming> {
    let Inbox { queue, letters } = inbox;
    let mut messages = Vec::with_capacity(letters.len());
    letters.retain_mut(|letter| match letter.take_text() {
        Some(text) => {
            messages.push(Incoming { text, attempts: letter.attempts });
            true
        }
        None => {
            let fields = json!({ "queue": queue, "attempts": letter.attempts });
            log.error("cannot read a message that is not text", fields);
            letter.answer(Disposition::Retry { delay_seconds: 0 });
            false
        }
    });
    messages
}

/// One line for the batch, and one for each message that failed.
fn report(log: &Log, topic: &Topic, verdicts: &[Verdict]) {
    for verdict in verdicts {
        match &verdict.end {
            End::DeadLettered(error) => log.error("gave up a message", failure(topic, verdict, error)),
            End::Failed(error) => log.error("could not handle a message", failure(topic, verdict, error)),
            End::Delivered | End::AtRest | End::Duplicate | End::Held => {}
        }
    }
    let count = |of: fn(&End) -> bool| verdicts.iter().filter(|verdict| of(&verdict.end)).count();
    let fields = json!({
        "topic": topic,
        "messages": verdicts.len(),
        "delivered": count(|end| *end == End::Delivered),
        "repeated": count(|end| matches!(end, End::AtRest | End::Duplicate)),
        "held": count(|end| *end == End::Held),
        "deadLettered": count(|end| matches!(end, End::DeadLettered(_))),
        "failed": count(|end| matches!(end, End::Failed(_))),
    });
    log.info("consumed a batch", fields);
}

fn failure(topic: &Topic, verdict: &Verdict, error: &str) -> Value {
    let retry_seconds = match verdict.disposition {
        Disposition::Ack => None,
        Disposition::Retry { delay_seconds } => Some(delay_seconds),
    };
    json!({
        "tenantId": verdict.key.as_ref().map(|key| &key.tenant_id),
        "eventId": verdict.key.as_ref().map(|key| &key.event_id),
        "topic": verdict.key.as_ref().map_or(topic, |key| &key.topic),
        "attempts": verdict.attempts,
        "retryInSeconds": retry_seconds,
        "error": error,
    })
}
