//! Handing messages over to runs of Workers, and what becomes of those that nobody answers for.

use std::rc::Rc;

use swarm_consumer_kit::Disposition;

use super::{Letter, Purpose};
use crate::actors::{archiver, consumer};
use crate::faults::FaultKind;
use crate::plan::MINUTE_MS;
use crate::process::Process;
use crate::world::World;

/// Messages that a run has and has not answered for. If the run ends without an answer, all of them come again.
pub struct InFlight {
    world: Rc<World>,
    queue: usize,
    /// The messages.
    pub letters: Vec<Letter>,
}

impl InFlight {
    /// Answers message by message.
    pub fn answer(mut self, process: &Process, dispositions: &[Disposition]) {
        let world = Rc::clone(&self.world);
        let letters = std::mem::take(&mut self.letters);
        for (letter, disposition) in letters.iter().zip(dispositions) {
            let event = letter.about.as_ref().map(|about| about.event);
            process.note(event, || format!("m{} {disposition:?}", letter.id));
            match disposition {
                Disposition::Retry { delay_seconds } => {
                    world.broker.retry(&world, self.queue, letter.clone(), *delay_seconds);
                }
                Disposition::Ack => {
                    world.check_ack(process, self.queue, letter, &letters);
                    if world.faults.strikes(|weather| weather.ack_lost, FaultKind::AckLost) {
                        world.note(0, event, || format!("the acknowledgement of m{} got lost", letter.id));
                        let delay_seconds = world.dice.between(1, 120) as u32;
                        world.broker.retry(&world, self.queue, letter.clone(), delay_seconds);
                    }
                }
            }
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let queue = self.world.broker.queue(self.queue);
        queue.batches.set(queue.batches.get().saturating_sub(1));
        queue.signal.raise();
        for letter in std::mem::take(&mut self.letters) {
            let event = letter.about.as_ref().map(|about| about.event);
            self.world.note(0, event, || format!("nobody answered for m{}", letter.id));
            self.world.broker.retry(&self.world, self.queue, letter, queue.settings.retry_delay_seconds);
        }
    }
}

fn paused_until_ms(world: &World, number: usize) -> Option<i64> {
    world.faults.paused_until_ms(number, world.executor.now_ms())
}

/// Delivers a queue's messages for as long as the world stands.
pub async fn pump(world: Rc<World>, number: usize) {
    let queue = world.broker.queue(number);
    loop {
        match queue.next_at_ms() {
            None => queue.signal.wait().await,
            Some(at_ms) if at_ms > world.executor.now_ms() => {
                queue.signal.wait_until(&world.executor, at_ms).await;
            }
            Some(_) if paused_until_ms(&world, number).is_some() => {
                world.faults.count(FaultKind::DeliveryPaused);
                // The calm may end the pause early, so nobody sleeps through all of it.
                let until_ms = paused_until_ms(&world, number).unwrap_or_default();
                world.executor.sleep_until(until_ms.min(world.executor.now_ms() + MINUTE_MS)).await;
            }
            Some(_) => {
                world.executor.sleep_ms(world.dice.between(0, queue.settings.batch_timeout_ms)).await;
                let letters = queue.take(&world);
                if !letters.is_empty() {
                    queue.batches.set(queue.batches.get() + 1);
                    let in_flight = InFlight { world: Rc::clone(&world), queue: number, letters };
                    match &queue.settings.purpose {
                        Purpose::Topic(topic) => consumer::serve(&world, topic.clone(), in_flight),
                        Purpose::DeadLetters(_) => archiver::serve(&world, number, in_flight),
                    }
                }
            }
        }
    }
}
