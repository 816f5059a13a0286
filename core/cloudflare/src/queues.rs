//! Topic queues and dead-letter queues on Cloudflare Queues.

use js_sys::{Array, Promise};
use swarm_domain::limits::SEND_DEADLINE_MS;
use swarm_domain::ports::{Queues, SendError};
use swarm_domain::topic::Topic;
use wasm_bindgen::{JsCast, JsValue};
use worker_sys::Queue;

use crate::{js, runtime};

/// The queues that a Worker's environment binds, found by the names that follow from a topic.
#[derive(Clone, Debug)]
pub struct TopicQueues {
    env: JsValue,
}

impl TopicQueues {
    /// The queues bound in `env`.
    pub fn new(env: JsValue) -> Self {
        Self { env }
    }

    fn queue(&self, binding: String) -> Result<Queue, SendError> {
        let queue = js::property(&self.env, &binding);
        if queue.is_undefined() { Err(SendError::NoBinding(binding)) } else { Ok(queue.unchecked_into()) }
    }
}

impl Queues for TopicQueues {
    async fn send(&self, topic: &Topic, message: String) -> Result<(), SendError> {
        send(&self.queue(topic.binding())?, &message).await
    }

    async fn send_batch(&self, topic: &Topic, messages: Vec<String>) -> Result<(), SendError> {
        let queue = self.queue(topic.binding())?;
        let requests = Array::new();
        for message in &messages {
            requests.push(&js::object(&[("body", message.into()), ("contentType", "text".into())]));
        }
        settled(queue.send_batch(requests, JsValue::UNDEFINED)).await
    }

    async fn send_dead_letter(&self, topic: &Topic, message: String) -> Result<(), SendError> {
        send(&self.queue(topic.dead_letter_binding())?, &message).await
    }
}

/// As text: the runtime's own serialization loses maps and big numbers.
async fn send(queue: &Queue, message: &str) -> Result<(), SendError> {
    let options = js::object(&[("contentType", "text".into())]);
    settled(queue.send(JsValue::from_str(message), options)).await
}

/// Queues have been seen to hang for a minute, so no send waits longer than its deadline.
async fn settled(send: Result<Promise, JsValue>) -> Result<(), SendError> {
    let thrown = |error: JsValue| sort(js::error_message(&error));
    match runtime::within_ms(SEND_DEADLINE_MS as u64, &send.map_err(thrown)?).await {
        Some(answer) => answer.map(|_| ()).map_err(thrown),
        None => Err(SendError::Refused(format!("the queue did not answer within {SEND_DEADLINE_MS} ms"))),
    }
}

/// Codes of errors that concern the queue itself: it does not exist, or this account may not write to it.
const NO_QUEUE: [&str; 2] = ["10104", "10106"];
/// Codes of errors that concern what was sent: a delay, metadata, a size, or a batch that cannot be.
const REJECTED: [&str; 5] = ["10202", "10203", "10204", "10205", "10206"];

/// Sorts an error by the code at the end of its text: `Queue not found (10104)`. What is not known counts as temporary,
/// because then the message is sent again until its attempts are used up.
fn sort(message: String) -> SendError {
    let code = message.trim_end().strip_suffix(')').and_then(|text| text.rsplit_once('('));
    match code.map(|(_, code)| code) {
        Some(code) if NO_QUEUE.contains(&code) => SendError::NoQueue(message),
        Some(code) if REJECTED.contains(&code) => SendError::Rejected(message),
        _ => SendError::Refused(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_sorted_by_their_code() {
        for (message, expected) in [
            ("Queue not found (10104)", "no queue"),
            ("Unauthorized (10106)", "no queue"),
            ("Batch delay is invalid (10202)", "rejected"),
            ("Message metadata is invalid (10203)", "rejected"),
            ("Message length of 130000 bytes exceeds limit of 128000 (10204)", "rejected"),
            ("Batch size is invalid (10205)", "rejected"),
            ("Batch message count of 101 exceeds limit of 100 (10206) ", "rejected"),
            ("Client disconnected (10201)", "refused"),
            ("Queue is overloaded (10250)", "refused"),
            ("Storage limit exceeded (10251)", "refused"),
            ("Queue is paused (10252)", "refused"),
            ("Unknown Internal Error (15000)", "refused"),
            ("Too Many Requests", "refused"),
            ("10104", "refused"),
            ("the limit (10204) was mentioned, but not as the code", "refused"),
            ("", "refused"),
        ] {
            let sorted = match sort(message.to_owned()) {
                SendError::NoBinding(_) => "no binding",
                SendError::NoQueue(_) => "no queue",
                SendError::Rejected(_) => "rejected",
                SendError::Refused(_) => "refused",
            };
            assert_eq!(sorted, expected, "{message}");
        }
    }
}
