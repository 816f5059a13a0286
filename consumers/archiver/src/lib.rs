//! The dead-letter archiver: one queue handler around [`swarm_domain::archive`], one deployment for all dead-letter queues.
//!
//! It is a Worker of its own, because what kills a consumer must not keep its dead letters from being archived.

use serde_json::{Value, json};
use swarm_cloudflare::inbox::Inbox;
use swarm_cloudflare::log::Log;
use swarm_cloudflare::{Bindings, D1Shard, Misconfigured, R2Blobs, SystemClock};
use swarm_domain::archive::{Archiver, Filed, Filing, Letter, retry_after_seconds};
use swarm_domain::inbox::{Disposition, RawBody};
use swarm_domain::incident::Report;
use swarm_domain::ledger::Ledger;
use swarm_domain::ports::Clock;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
// Linked for its start function, which lets the next request find a fresh module after a panic; worker-build's shim needs it.
use worker as _;

const LOG: Log = Log::new("swarm-dlq-archiver");

/// A batch from a dead-letter queue. If it is rejected, the runtime delivers the whole batch again.
#[wasm_bindgen]
pub async fn queue(batch: JsValue, env: JsValue, _ctx: JsValue) -> Result<JsValue, JsValue> {
    let mut inbox = Inbox::open(batch, &LOG)?;
    match read(&Bindings::new(env)) {
        Ok((ledger, blobs)) => {
            let archiver = Archiver { ledger: &ledger, blobs: &blobs };
            let letters = take_letters(&mut inbox);
            let filed = archiver.archive(&inbox.queue, letters, SystemClock.now()).await;
            inbox.answer(filed.iter().map(|filed| filed.disposition));
            report(&inbox.queue, &filed);
        }
        Err(Misconfigured(problem)) => {
            inbox.retry_all(retry_after_seconds);
            let fields = json!({ "queue": inbox.queue, "messages": inbox.letters.len(), "error": problem });
            LOG.error("cannot archive; the letters will come again", fields);
        }
    }
    Ok(JsValue::UNDEFINED)
}

fn read(bindings: &Bindings) -> Result<(Ledger<D1Shard>, R2Blobs), Misconfigured> {
    Ok((bindings.ledger()?, bindings.blobs()?))
}

fn take_letters(inbox: &mut Inbox) -> Vec<Letter> {
    let letters = inbox.letters.iter_mut().map(|letter| {
        let body = std::mem::replace(&mut letter.body, RawBody::Text(String::new()));
        Letter { body, attempts: letter.attempts }
    });
    letters.collect()
}

/// One line for the batch, and one for each letter that somebody should look at.
fn report(queue: &str, filed: &[Filed]) {
    for Filed { filing, disposition } in filed {
        match filing {
            Filing::Reported(report) => LOG.info("archived a dead letter", dispatch(report)),
            Filing::Void(report) => LOG.info("a dead letter says nothing any more", dispatch(report)),
            Filing::Foreign { incident_id, error } => {
                let fields = json!({ "queue": queue, "incidentId": incident_id, "error": error });
                LOG.error("archived a message that is not ours", fields);
            }
            Filing::Failed(error) => {
                let retry_seconds = match disposition {
                    Disposition::Ack => None,
                    Disposition::Retry { delay_seconds } => Some(delay_seconds),
                };
                let fields = json!({ "queue": queue, "retryInSeconds": retry_seconds, "error": error });
                LOG.error("could not archive a dead letter", fields);
            }
        }
    }
    let count = |of: fn(&Filing) -> bool| filed.iter().filter(|filed| of(&filed.filing)).count();
    let fields = json!({
        "queue": queue,
        "letters": filed.len(),
        "reported": count(|filing| matches!(filing, Filing::Reported(_))),
        "void": count(|filing| matches!(filing, Filing::Void(_))),
        "foreign": count(|filing| matches!(filing, Filing::Foreign { .. })),
        "failed": count(|filing| matches!(filing, Filing::Failed(_))),
    });
    LOG.info("archived a batch", fields);
}

fn dispatch(report: &Report) -> Value {
    json!({
        "incidentId": report.incident_id,
        "tenantId": report.key.tenant_id,
        "eventId": report.key.event_id,
        "topic": report.key.topic,
        "error": report.error,
    })
}
