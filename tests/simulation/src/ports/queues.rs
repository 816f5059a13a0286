//! The queues that a run may send to.

use std::rc::Rc;

use swarm_domain::limits::{QUEUE_BATCH_BYTES_MAX, QUEUE_BATCH_MESSAGES_MAX, QUEUE_MESSAGE_BYTES_MAX};
use swarm_domain::ports::{Queues, SendError};
use swarm_domain::topic::Topic;

use crate::faults::Port;
use crate::process::Process;

/// The queues in the hands of one run.
pub struct SimQueues(pub Rc<Process>);

impl SimQueues {
    async fn deliver(&self, queue: String, binding: String, texts: Vec<String>) -> Result<(), SendError> {
        check(&texts)?;
        let world = &self.0.world;
        let Some(number) = world.broker.number_of(&queue) else {
            return Err(SendError::NoBinding(binding));
        };
        if world.is_mutant("mark before send") {
            // The send counts as done before it is, and is lost if the run ends or the queue refuses meanwhile.
            let process = Rc::clone(&self.0);
            self.0.spawn(async move {
                process.world.executor.sleep_ms(2_000).await;
                let send = || process.world.broker.send(&process, number, &texts);
                let _ = process.call(Port::Queue(number), "late send", send).await;
            });
            return Ok(());
        }
        let what = format!("{queue}, {} messages", texts.len());
        let answer = self.0.call(Port::Queue(number), &what, || world.broker.send(&self.0, number, &texts));
        answer.await.map_err(|problem| SendError::Refused(problem.to_owned()))
    }
}

impl Queues for SimQueues {
    async fn send(&self, topic: &Topic, message: String) -> Result<(), SendError> {
        self.deliver(topic.queue(), topic.binding(), vec![message]).await
    }

    async fn send_batch(&self, topic: &Topic, messages: Vec<String>) -> Result<(), SendError> {
        self.deliver(topic.queue(), topic.binding(), messages).await
    }

    async fn send_dead_letter(&self, topic: &Topic, message: String) -> Result<(), SendError> {
        self.deliver(topic.dead_letter_queue(), topic.dead_letter_binding(), vec![message]).await
    }
}

fn check(texts: &[String]) -> Result<(), SendError> {
    let bytes: usize = texts.iter().map(String::len).sum();
    let too_large = texts.iter().any(|text| text.len() > QUEUE_MESSAGE_BYTES_MAX);
    if too_large || texts.len() > QUEUE_BATCH_MESSAGES_MAX || bytes > QUEUE_BATCH_BYTES_MAX {
        return Err(SendError::Refused(format!(
            "{} messages of {bytes} bytes are too much (10204)",
            texts.len()
        )));
    }
    Ok(())
}
