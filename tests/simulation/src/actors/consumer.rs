//! Consumers: the real kit around a handler that does what the plan and the event's poison say.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use swarm_consumer_kit::{Consumer, Delivery, Disposition, Failure, Handled, Handler, Incoming};
use swarm_domain::ids::payload_hash;
use swarm_domain::ports::Statement;
use swarm_domain::topic::Topic;

use crate::broker::InFlight;
use crate::checkers::handling;
use crate::executor::never;
use crate::faults::FaultKind;
use crate::plan::MINUTE_MS;
use crate::ports::{SimBlobs, SimClock, SimQueues, ledger};
use crate::process::{Actor, Process};
use crate::witness::{About, EventNo, Poison};
use crate::world::World;

/// When the platform ends a consumer.
pub const CONSUMER_LIMIT_MS: i64 = 15 * MINUTE_MS;

const EFFECT: &str = "INSERT INTO simulation_effects (tenant_id, event_id, topic, generation, refused) VALUES (?1, ?2, ?3, ?4, ?5)";

/// Runs a consumer over a batch.
pub fn serve(world: &Rc<World>, topic: Topic, in_flight: InFlight) {
    let process = Process::new(world, Actor::Consumer);
    for letter in &in_flight.letters {
        let event = letter.about.as_ref().map(|about| about.event);
        process
            .note(event, || format!("consumer of {topic} gets m{}, delivery {}", letter.id, letter.attempts));
    }
    process.spawn(consume(Rc::clone(&process), topic, in_flight));
}

async fn consume(process: Rc<Process>, topic: Topic, in_flight: InFlight) {
    let world = Rc::clone(&process.world);
    let max_retries =
        world.broker.number_of(&topic.queue()).map(|number| world.broker.settings(number).max_retries);
    let incoming = |letter: &crate::broker::Letter| Incoming {
        text: letter.text.to_string(),
        attempts: letter.attempts,
    };
    let messages: Vec<Incoming> = in_flight.letters.iter().map(incoming).collect();
    let handler = SimHandler { process: Rc::clone(&process), generations: generations(&in_flight) };
    let (ledger, queues, blobs) =
        (ledger(&process), SimQueues(Rc::clone(&process)), SimBlobs(Rc::clone(&process)));
    let consumer = Consumer {
        ledger: &ledger,
        queues: &queues,
        blobs: &blobs,
        clock: &SimClock(Rc::clone(&process)),
        handler: &handler,
        topic: &topic,
        max_retries: max_retries.unwrap_or_default(),
    };
    let given: Vec<About> = in_flight.letters.iter().filter_map(|letter| letter.about.clone()).collect();
    let in_flight = RefCell::new(Some(in_flight));
    if world.is_mutant("acknowledge before the ledger has it") {
        acknowledge_all(&process, in_flight.take());
    }
    let token = process.token();
    let mut work = pin!(consumer.consume(messages, &token));
    let mut limit = Some(world.executor.sleep_ms(CONSUMER_LIMIT_MS));
    let verdicts = std::future::poll_fn(|context| {
        if let Poll::Ready(verdicts) = work.as_mut().poll(context) {
            return Poll::Ready(Some(verdicts));
        }
        let over = limit.as_mut().is_some_and(|limit| Pin::new(limit).poll(context).is_ready());
        if over {
            limit = None;
            process.overdue.set(true);
            drop(in_flight.take());
            if !process.handlers_done.get() {
                return Poll::Ready(None);
            }
        }
        Poll::Pending
    });
    let Some(verdicts) = verdicts.await else {
        process.note(None, || "ended by the platform after 15 minutes".to_owned());
        return;
    };
    for verdict in &verdicts {
        let event = verdict
            .key
            .as_ref()
            .and_then(|key| world.witness.borrow().event_no(&key.tenant_id, &key.event_id));
        process.note(event, || format!("{:?}", verdict.end));
    }
    let dispositions: Vec<Disposition> = verdicts.iter().map(|verdict| verdict.disposition).collect();
    if let Some(in_flight) = in_flight.take() {
        in_flight.answer(&process, &dispositions);
    }
    handling::ended(&process, &token, &given);
}

fn acknowledge_all(process: &Process, in_flight: Option<InFlight>) {
    if let Some(in_flight) = in_flight {
        let all = vec![Disposition::Ack; in_flight.letters.len()];
        in_flight.answer(process, &all);
    }
}

/// The generations of each event's messages in a batch.
fn generations(in_flight: &InFlight) -> BTreeMap<EventNo, BTreeSet<u32>> {
    let abouts = in_flight.letters.iter().filter_map(|letter| letter.about.as_ref());
    let mut generations: BTreeMap<EventNo, BTreeSet<u32>> = BTreeMap::new();
    for about in abouts {
        generations.entry(about.event).or_default().insert(about.generation);
    }
    generations
}

struct SimHandler {
    process: Rc<Process>,
    generations: BTreeMap<EventNo, BTreeSet<u32>>,
}

impl Handler for SimHandler {
    async fn handle(&self, delivery: &Delivery) -> Result<Handled, Failure> {
        let world = &self.process.world;
        self.process.handlers_done.set(false);
        if self.process.overdue.get() {
            return self.process.die().await;
        }
        let envelope = &delivery.envelope;
        let number = world.witness.borrow().event_no(&envelope.tenant_id, &envelope.id);
        let Some(event) = number else {
            return Err(Failure::permanent("nobody published this event"));
        };
        let generation = self.generation(event, delivery);
        let topic = delivery.topic.as_str();
        let hash = payload_hash(&delivery.payload);
        let running = handling::started(&self.process, event, topic, generation, &hash);
        let raging = world.faults.is_raging();
        let slow = raging && world.dice.chance(world.plan.handler_slow);
        if slow {
            world.faults.count(FaultKind::HandlerSlow);
        }
        world.executor.sleep_ms(world.dice.between(1, if slow { 10 * MINUTE_MS } else { 400 })).await;
        let result = self.outcome(event, delivery, generation).await;
        running.finished(&result);
        result
    }

    async fn handle_batch(&self, batch: &[Delivery]) -> Vec<Result<Handled, Failure>> {
        let mut results = Vec::with_capacity(batch.len());
        for delivery in batch {
            results.push(self.handle(delivery).await);
        }
        self.process.handlers_done.set(true);
        results
    }
}

impl SimHandler {
    /// Which of a batch's messages of an event this delivery is: only the latest of several repetitions is handled.
    fn generation(&self, event: EventNo, delivery: &Delivery) -> u32 {
        let generations = self.generations.get(&event);
        let latest = generations.and_then(|generations| generations.last().copied()).unwrap_or_default();
        if delivery.replay_of.is_none() { 0 } else { latest }
    }

    async fn outcome(
        &self,
        event: EventNo,
        delivery: &Delivery,
        generation: u32,
    ) -> Result<Handled, Failure> {
        let world = &self.process.world;
        let raging = world.faults.is_raging();
        let poison = if raging { world.witness.borrow_mut().event(event).poison } else { Poison::None };
        match poison {
            Poison::Permanent => {
                world.faults.count(FaultKind::HandlerPermanent);
                return Err(Failure::permanent("poison: this can never work"));
            }
            Poison::Transient => {
                world.faults.count(FaultKind::HandlerTransient);
                return Err(Failure::transient("poison: not yet"));
            }
            Poison::Panic => {
                world.faults.count(FaultKind::HandlerPanicked);
                self.process.note(Some(event), || "the handler panics".to_owned());
                return self.process.die().await;
            }
            Poison::Hang => {
                world.faults.count(FaultKind::HandlerHung);
                self.process.note(Some(event), || "the handler hangs".to_owned());
                return never().await;
            }
            Poison::Effect | Poison::None => {}
        }
        if raging && world.dice.chance(world.plan.handler_transient) {
            world.faults.count(FaultKind::HandlerTransient);
            return Err(Failure::transient("a failure that passes"));
        }
        let refused = i64::from(poison == Poison::Effect);
        if refused == 1 {
            world.faults.count(FaultKind::EffectRefused);
        }
        let envelope = &delivery.envelope;
        let values = vec![
            envelope.tenant_id.as_str().into(),
            envelope.id.as_str().into(),
            delivery.topic.as_str().into(),
            i64::from(generation).into(),
            refused.into(),
        ];
        Ok(Handled::with_effects(vec![Statement::new(EFFECT, values)]))
    }
}
