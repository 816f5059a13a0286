//! Dead letters: a message on its way to an incident, with the error that the platform's own move would lose.

use swarm_domain::limits::QUEUE_MESSAGE_BYTES_MAX;
use swarm_domain::message::{DeadLetter, short_stack};
use swarm_domain::ports::{Queues, SendError};
use swarm_domain::settle::short_error;
use swarm_domain::time::Timestamp;
use swarm_domain::topic::Topic;

use crate::consume::Incoming;

/// The largest letter; the rest is for the platform's own metadata.
const LETTER_BYTES_MAX: usize = QUEUE_MESSAGE_BYTES_MAX - 1_000;

/// Why a message ends among the dead letters.
#[derive(Clone, Copy, Debug)]
pub struct Reason<'a> {
    pub error: &'a str,
    pub stack: Option<&'a str>,
}

/// Sends a message of `topic` to its dead-letter queue.
pub async fn send<Q: Queues>(
    queues: &Q,
    topic: &Topic,
    incoming: &Incoming,
    reason: Reason<'_>,
    now: Timestamp,
) -> Result<(), SendError> {
    queues.send_dead_letter(topic, write(topic, incoming, reason, now)?).await
}

/// The text of a letter. Quoting can make a large message too large for a queue; then it goes bare, as the platform itself
/// would move it, and the error is found in the ledger and in the log.
fn write(
    topic: &Topic,
    incoming: &Incoming,
    reason: Reason<'_>,
    now: Timestamp,
) -> Result<String, SendError> {
    let letter = DeadLetter {
        v: DeadLetter::VERSION,
        source_queue: topic.queue(),
        attempts: incoming.attempts,
        error: short_error(reason.error),
        stack: reason.stack.map(short_stack),
        failed_at: now.rfc3339(),
        message: incoming.text.clone(),
    };
    let text = serde_json::to_string(&letter).map_err(|e| SendError::Refused(e.to_string()))?;
    Ok(if text.len() <= LETTER_BYTES_MAX { text } else { letter.message })
}

/// What to say of a message that should have become a dead letter and did not.
pub fn unsent(error: &str, send_error: &SendError) -> String {
    format!("{error} (and the dead-letter queue did not take it: {send_error})")
}
