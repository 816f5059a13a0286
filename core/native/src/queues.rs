//! Topic queues in memory: what was sent stays in order until somebody takes it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use swarm_domain::limits::{QUEUE_BATCH_BYTES_MAX, QUEUE_BATCH_MESSAGES_MAX, QUEUE_MESSAGE_BYTES_MAX};
use swarm_domain::ports::{Queues, SendError};
use swarm_domain::topic::Topic;

/// A topic's queue and its dead-letter queue.
#[derive(Debug, Default)]
struct Queue {
    messages: Vec<String>,
    dead_letters: Vec<String>,
}

/// The queues of the topics that a Worker is bound to.
#[derive(Clone, Debug, Default)]
pub struct MemoryQueues(Rc<RefCell<BTreeMap<Topic, Queue>>>);

impl MemoryQueues {
    /// Queues for these topics, and for no others.
    pub fn new(topics: impl IntoIterator<Item = Topic>) -> Self {
        let queues = topics.into_iter().map(|topic| (topic, Queue::default())).collect();
        Self(Rc::new(RefCell::new(queues)))
    }

    /// Takes all messages of a topic, oldest first, as a consumer would.
    pub fn take(&self, topic: &Topic) -> Vec<String> {
        self.with(topic, |queue| std::mem::take(&mut queue.messages))
    }

    /// Takes all dead letters of a topic, oldest first.
    pub fn take_dead_letters(&self, topic: &Topic) -> Vec<String> {
        self.with(topic, |queue| std::mem::take(&mut queue.dead_letters))
    }

    /// How many messages of a topic nobody has taken yet.
    pub fn waiting(&self, topic: &Topic) -> usize {
        self.with(topic, |queue| queue.messages.len())
    }

    fn with<T: Default>(&self, topic: &Topic, read: impl FnOnce(&mut Queue) -> T) -> T {
        self.0.borrow_mut().get_mut(topic).map(read).unwrap_or_default()
    }

    fn write(&self, topic: &Topic, binding: String, write: impl FnOnce(&mut Queue)) -> Result<(), SendError> {
        match self.0.borrow_mut().get_mut(topic) {
            Some(queue) => {
                write(queue);
                Ok(())
            }
            None => Err(SendError::NoBinding(binding)),
        }
    }
}

impl Queues for MemoryQueues {
    async fn send(&self, topic: &Topic, message: String) -> Result<(), SendError> {
        check_message(&message)?;
        self.write(topic, topic.binding(), |queue| queue.messages.push(message))
    }

    async fn send_batch(&self, topic: &Topic, messages: Vec<String>) -> Result<(), SendError> {
        check_batch(&messages)?;
        self.write(topic, topic.binding(), |queue| queue.messages.extend(messages))
    }

    async fn send_dead_letter(&self, topic: &Topic, message: String) -> Result<(), SendError> {
        check_message(&message)?;
        self.write(topic, topic.dead_letter_binding(), |queue| queue.dead_letters.push(message))
    }
}

fn check_message(message: &str) -> Result<(), SendError> {
    if message.len() > QUEUE_MESSAGE_BYTES_MAX {
        let problem = format!("a message of {} bytes; the limit is {QUEUE_MESSAGE_BYTES_MAX}", message.len());
        return Err(SendError::Rejected(problem));
    }
    Ok(())
}

fn check_batch(messages: &[String]) -> Result<(), SendError> {
    messages.iter().try_for_each(|message| check_message(message))?;
    let bytes: usize = messages.iter().map(String::len).sum();
    if messages.len() > QUEUE_BATCH_MESSAGES_MAX || bytes > QUEUE_BATCH_BYTES_MAX {
        return Err(SendError::Rejected(format!(
            "a batch of {} messages and {bytes} bytes; the limits are {QUEUE_BATCH_MESSAGES_MAX} and {QUEUE_BATCH_BYTES_MAX}",
            messages.len(),
        )));
    }
    Ok(())
}
