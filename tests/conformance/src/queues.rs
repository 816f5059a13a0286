//! Sending to queues: what is taken, what is refused, and which refusals say that a binding is missing.

use swarm_domain::limits::{QUEUE_BATCH_BYTES_MAX, QUEUE_BATCH_MESSAGES_MAX, QUEUE_MESSAGE_BYTES_MAX};
use swarm_domain::ports::{Queues, SendError};
use swarm_domain::topic::{InvalidTopic, Topic};

use crate::case::{CaseResult, Check, case, equal};

/// Runs every case about queues. The topic `conformance` must be bound with its dead-letter queue, and `nowhere` must not.
pub async fn run_queues<Q: Queues>(queues: &Q) -> Vec<CaseResult> {
    vec![
        case("a message is taken", send(queues)).await,
        case("a message of 120,000 bytes is taken", large(queues)).await,
        case("a message above 128,000 bytes is refused", too_large(queues)).await,
        case("a batch of 100 messages is taken", batch(queues)).await,
        case("a batch of 101 messages is refused", long_batch(queues)).await,
        case("a batch of 240 KB is taken", large_batch(queues)).await,
        case("a batch far above 256 KB is refused", too_large_batch(queues)).await,
        case("one message that is too large refuses its batch", one_too_large(queues)).await,
        case("a dead letter is taken", dead_letter(queues)).await,
        case("a topic without a binding is named with the binding", unbound(queues)).await,
    ]
}

fn topic(name: &str) -> Result<Topic, String> {
    Topic::try_from(name.to_owned()).map_err(|e: InvalidTopic| e.to_string())
}

fn bound() -> Result<Topic, String> {
    topic("conformance")
}

fn taken(answer: Result<(), SendError>) -> Check {
    answer.map_err(|e| format!("refused: {e}"))
}

fn refused(answer: Result<(), SendError>) -> Check {
    match answer {
        // The local broker gives one code for all refusals, so it cannot be seen here that these are for good.
        Err(SendError::Rejected(_) | SendError::Refused(_)) => Ok(()),
        other => Err(format!("saw {other:?}, expected a refusal")),
    }
}

async fn send<Q: Queues>(queues: &Q) -> Check {
    taken(queues.send(&bound()?, r#"{"v":1,"payload":{"n":1.0,"e":"😀"}}"#.to_owned()).await)
}

async fn large<Q: Queues>(queues: &Q) -> Check {
    taken(queues.send(&bound()?, "x".repeat(120_000)).await)
}

async fn too_large<Q: Queues>(queues: &Q) -> Check {
    refused(queues.send(&bound()?, "x".repeat(QUEUE_MESSAGE_BYTES_MAX + 1)).await)
}

async fn batch<Q: Queues>(queues: &Q) -> Check {
    taken(queues.send_batch(&bound()?, vec!["{}".to_owned(); QUEUE_BATCH_MESSAGES_MAX]).await)
}

async fn long_batch<Q: Queues>(queues: &Q) -> Check {
    refused(queues.send_batch(&bound()?, vec!["{}".to_owned(); QUEUE_BATCH_MESSAGES_MAX + 1]).await)
}

async fn large_batch<Q: Queues>(queues: &Q) -> Check {
    taken(queues.send_batch(&bound()?, vec!["x".repeat(120_000); 2]).await)
}

async fn too_large_batch<Q: Queues>(queues: &Q) -> Check {
    // The local broker allows an eighth more than the documentation, so this goes beyond both.
    let messages = vec!["x".repeat(QUEUE_BATCH_BYTES_MAX / 20); 24];
    refused(queues.send_batch(&bound()?, messages).await)
}

async fn one_too_large<Q: Queues>(queues: &Q) -> Check {
    let messages = vec!["{}".to_owned(), "x".repeat(QUEUE_MESSAGE_BYTES_MAX + 1)];
    refused(queues.send_batch(&bound()?, messages).await)
}

async fn dead_letter<Q: Queues>(queues: &Q) -> Check {
    taken(queues.send_dead_letter(&bound()?, "not even JSON".to_owned()).await)
}

async fn unbound<Q: Queues>(queues: &Q) -> Check {
    let nowhere = topic("nowhere")?;
    let no_binding = |name: &str| Err(SendError::NoBinding(name.to_owned()));
    equal("send", queues.send(&nowhere, "{}".to_owned()).await, no_binding("TOPIC_NOWHERE"))?;
    let batch = queues.send_batch(&nowhere, vec!["{}".to_owned()]).await;
    equal("send_batch", batch, no_binding("TOPIC_NOWHERE"))?;
    let dead_letter = queues.send_dead_letter(&nowhere, "{}".to_owned()).await;
    equal("send_dead_letter", dead_letter, no_binding("DLQ_NOWHERE"))
}
