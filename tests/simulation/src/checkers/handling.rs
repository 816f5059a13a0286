//! What handlers go through: nothing is started again after it was delivered, nothing is handled twice at once, nothing
//! poisonous for ever, and every payload arrives as it was stored.

use std::rc::Rc;

use swarm_consumer_kit::{Failure, Handled};
use swarm_domain::limits::HANDLE_STARTS_MAX;

use crate::process::Process;
use crate::witness::{About, EventNo, Poison};

/// No handler is started for what was delivered.
pub const AFTER_DELIVERED: &str = "not started again after delivered";
/// No two handlers at once.
pub const ONE_AT_A_TIME: &str = "handled by one at a time";
/// What never finishes is not started for ever.
pub const STARTS: &str = "what never finishes is given up";
/// Payloads arrive unchanged.
pub const PAYLOADS: &str = "payloads";
/// Who has ended well holds nothing back.
pub const RELEASED: &str = "who has ended holds no lease";

/// A handler at work. Dropped without a result, it has died.
pub struct Running {
    process: Rc<Process>,
    event: EventNo,
    topic: String,
    generation: u32,
}

/// A handler starts.
pub fn started(process: &Rc<Process>, event: EventNo, topic: &str, generation: u32, hash: &str) -> Running {
    let world = &process.world;
    process.note(Some(event), || format!("handler of {topic} starts, generation {generation}"));
    let mut witness = world.witness.borrow_mut();
    let facts = witness.event(event);
    let (poison, stored) = (facts.poison, facts.stored.as_deref() == Some(hash));
    let repetition = witness.dispatch(event, topic).repetition(generation);
    repetition.starts += 1;
    let (starts, delivered) = (repetition.starts, repetition.delivered);
    let other = repetition.running.first().copied();
    repetition.running.insert(process.id);
    drop(witness);
    if delivered > 0 {
        let text = format!("the handler of {topic} is started after generation {generation} was delivered");
        world.violation(AFTER_DELIVERED, Some(event), text);
    }
    if let Some(other) = other {
        let text = format!("#{} starts {topic} while #{other} is at it, generation {generation}", process.id);
        world.violation(ONE_AT_A_TIME, Some(event), text);
    }
    let never_finishes = matches!(poison, Poison::Panic | Poison::Hang);
    if never_finishes && world.faults.is_raging() && starts > HANDLE_STARTS_MAX {
        let text =
            format!("{topic} was started {starts} times in generation {generation} and never finished");
        world.violation(STARTS, Some(event), text);
    }
    if !stored {
        world.violation(
            PAYLOADS,
            Some(event),
            format!("the handler of {topic} got another payload than was stored"),
        );
    }
    Running { process: Rc::clone(process), event, topic: topic.to_owned(), generation }
}

impl Running {
    /// The handler has come to an end.
    pub fn finished(self, result: &Result<Handled, Failure>) {
        self.process.note(Some(self.event), || match result {
            Ok(_) => "handler is done".to_owned(),
            Err(failure) => format!("handler fails: {failure}"),
        });
        if result.is_ok() {
            let mut witness = self.process.world.witness.borrow_mut();
            witness.dispatch(self.event, &self.topic).repetition(self.generation).handled += 1;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut witness = self.process.world.witness.borrow_mut();
        witness
            .dispatch(self.event, &self.topic)
            .repetition(self.generation)
            .running
            .remove(&self.process.id);
    }
}

/// A consumer has ended. If none of its calls went wrong, it holds no lease any more on what it was given.
pub fn ended(process: &Process, token: &str, given: &[About]) {
    if process.troubled.get() {
        return;
    }
    for about in given {
        let mut witness = process.world.witness.borrow_mut();
        let row = witness.dispatch(about.event, &about.topic).row.as_ref();
        let held = row.is_some_and(|row| row.lease_holder.as_deref() == Some(token));
        drop(witness);
        if held {
            let text = format!("#{} has ended and keeps its lease on {}", process.id, about.topic);
            process.world.violation(RELEASED, Some(about.event), text);
        }
    }
}
