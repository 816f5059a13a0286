//! Topic queues and dead-letter queues on Cloudflare Queues.

use js_sys::{Array, Promise};
use swarm_domain::limits::SEND_DEADLINE_MS;
use swarm_domain::ports::{Queues, SendError};
use swarm_domain::topic::Topic;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
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
    let refused = |error: JsValue| SendError::Refused(js::error_message(&error));
    let answer = JsFuture::from(send.map_err(refused)?);
    match runtime::within_ms(SEND_DEADLINE_MS as u64, answer).await {
        Some(answer) => answer.map(|_| ()).map_err(refused),
        None => Err(SendError::Refused(format!("the queue did not answer within {SEND_DEADLINE_MS} ms"))),
    }
}
