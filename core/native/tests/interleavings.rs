//! Random orders of everything at once: publishers, sweepers and consumers step by step in the order of a seed, with calls
//! refused and answers lost, and runs that die between two steps. Then the faults end, and everything must come to rest.
//!
//! What must hold: nothing is handled again after it was delivered, each effect happens exactly once, and whatever the
//! database has recorded ends `delivered` or, if its sends failed or its handler died too often, as an incident.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use common::{MINUTE_MS, World, event, incidents, run, topic};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};
use swarm_domain::lease::{Generation, Lease, Outcome, settle, take, take_unfinished};
use swarm_domain::ledger::DispatchKey;
use swarm_domain::limits::{HANDLE_LEASE_MS, IN_TRANSIT_DEADLINE_MS_DEFAULT};
use swarm_domain::message::Message;
use swarm_domain::ports::{Clock, Queues, SqlError, Statement};
use swarm_native::{Fault, block_on};

const TOPICS: [&str; 2] = ["billing.events", "audit.events"];

type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// What one run of the test is made of.
#[derive(Clone, Debug)]
enum Step {
    /// Publish the event with this number.
    Publish(u8),
    /// Start a sweeper.
    Sweep,
    /// Start a consumer of one topic.
    Consume(usize),
    /// Let the task at this place (modulo their number) go on.
    Poll(usize),
    /// Let the task at this place die.
    Kill(usize),
    /// Let the next call to the database or to a queue fail.
    Fault(bool, bool),
    /// Let time pass.
    Wait(i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..6_u8).prop_map(Step::Publish),
        1 => Just(Step::Sweep),
        3 => (0..2_usize).prop_map(Step::Consume),
        20 => (0..8_usize).prop_map(Step::Poll),
        1 => (0..8_usize).prop_map(Step::Kill),
        2 => (any::<bool>(), any::<bool>()).prop_map(|(database, lost)| Step::Fault(database, lost)),
        2 => (0..40_i64).prop_map(|minutes| Step::Wait(minutes * MINUTE_MS)),
    ]
}

/// Whether the ledger calls it delivered, asked past all faults.
fn is_delivered(world: &World, key: &DispatchKey) -> bool {
    let sql =
        "SELECT 1 AS n FROM event_dispatches WHERE event_id = ?1 AND topic = ?2 AND status = 'delivered'";
    let values = vec![key.event_id.as_str().into(), key.topic.as_str().into()];
    !run(world.shard().port(), sql, values).is_empty()
}

/// Takes a topic's messages, as many as there are, and handles them; what fails goes back to the queue.
async fn consume(world: &World, name: &str) {
    let topic = topic(name);
    let texts = world.queues.port().queues.take(&topic);
    // From here on the queue's platform redelivers whatever is not acknowledged, even if the consumer dies.
    let mut batch = Unacknowledged { world, name, texts };
    let messages: Vec<Message> = batch.texts.iter().map(|text| Message::decode(text).unwrap()).collect();
    let holder = world.token();
    for message in messages {
        let generation = message.generation();
        let key = &generation.key;
        match lease(world, &generation, &holder).await {
            Ok(Lease::Ours) => {
                assert!(!is_delivered(world, key), "{key:?} is handled although it is delivered");
                let effect = Statement::new(
                    "INSERT INTO effects VALUES (?1, ?2)",
                    vec![key.event_id.as_str().into(), key.topic.as_str().into()],
                );
                let outcomes = vec![(generation.clone(), Outcome::Delivered(vec![effect]))];
                if settle(world.shard(), outcomes, &holder, world.clock.now()).await.is_ok() {
                    batch.acknowledge(key);
                }
            }
            Ok(Lease::Stalled) => {
                // Its letter is lost, so the sweeper has to write its incident.
                let outcomes = vec![(generation.clone(), Outcome::DeadLettered("stalled".to_owned()))];
                if settle(world.shard(), outcomes, &holder, world.clock.now()).await.is_ok() {
                    batch.acknowledge(key);
                }
            }
            Ok(Lease::AtRest) => batch.acknowledge(key),
            Ok(Lease::Held | Lease::Unfinished) | Err(_) => {}
            Ok(Lease::Unknown) => panic!("{key:?} is in a queue and not in the ledger"),
        }
    }
}

async fn lease(world: &World, generation: &Generation, holder: &str) -> Result<Lease, SqlError> {
    let now = world.clock.now();
    let leases = take(world.shard(), std::slice::from_ref(generation), holder, now).await?;
    match leases[generation] {
        Lease::Unfinished => take_unfinished(world.shard(), generation, holder, now).await,
        lease => Ok(lease),
    }
}

/// Messages that return to their queue when the consumer ends without having acknowledged them.
struct Unacknowledged<'a> {
    world: &'a World,
    name: &'a str,
    texts: Vec<String>,
}

impl Unacknowledged<'_> {
    fn acknowledge(&mut self, key: &DispatchKey) {
        let at = self.texts.iter().position(|text| Message::decode(text).unwrap().key() == *key);
        self.texts.remove(at.unwrap());
    }
}

impl Drop for Unacknowledged<'_> {
    fn drop(&mut self) {
        for text in self.texts.drain(..) {
            block_on(self.world.queues.port().queues.send(&topic(self.name), text)).unwrap();
        }
    }
}

fn start<'a>(world: &'a World, step: &Step) -> Option<Task<'a>> {
    match step {
        Step::Publish(number) => {
            let event = event(&format!("e{number}"), "shop.order.paid");
            Some(Box::pin(async move { drop(world.publish_all(vec![event]).await) }))
        }
        Step::Sweep => Some(Box::pin(async move { drop(world.sweep_with(&world.token()).await) })),
        Step::Consume(at) => Some(Box::pin(consume(world, TOPICS[*at]))),
        _ => None,
    }
}

fn storm(world: &World, steps: &[Step]) {
    let mut tasks: Vec<Task<'_>> = Vec::new();
    let mut context = Context::from_waker(Waker::noop());
    for step in steps {
        tasks.extend(start(world, step));
        match step {
            Step::Poll(at) if !tasks.is_empty() => {
                let at = at % tasks.len();
                if let Poll::Ready(()) = tasks[at].as_mut().poll(&mut context) {
                    drop(tasks.remove(at));
                }
            }
            Step::Kill(at) if !tasks.is_empty() => drop(tasks.remove(at % tasks.len())),
            Step::Fault(database, lost) => {
                let fault = if *lost { Fault::AnswerLost } else { Fault::Refused };
                if *database { world.shard().fail_at(0, fault) } else { world.queues.fail_at(0, fault) }
            }
            Step::Wait(ms) => world.clock.advance_ms(*ms),
            _ => {}
        }
    }
}

/// Without faults, a few rounds must bring everything to rest.
fn calm(world: &World) {
    for wait in [0, HANDLE_LEASE_MS, IN_TRANSIT_DEADLINE_MS_DEFAULT, HANDLE_LEASE_MS] {
        world.clock.advance_ms(wait);
        world.sweep();
        for name in TOPICS {
            block_on(consume(world, name));
        }
    }
}

fn check(steps: &[Step]) {
    let world = World::new(1);
    run(world.shard().port(), "CREATE TABLE effects (event_id TEXT, topic TEXT)", Vec::new());
    storm(&world, steps);
    world.shard().heal();
    world.queues.heal();
    calm(&world);
    let (delivered, given_up): (Vec<_>, Vec<_>) =
        world.dispatches().into_iter().partition(|line| line.ends_with(" delivered"));
    let is_at_rest = |line: &String| line.ends_with(" dlq_abandoned") || line.ends_with(" dead_lettered");
    assert!(given_up.iter().all(is_at_rest), "not at rest: {given_up:?}");
    assert_eq!(incidents(&world).len(), given_up.len(), "one incident for each of {given_up:?}");
    let effects = world.rows("SELECT event_id || topic AS line FROM effects");
    let distinct: BTreeSet<_> = effects.iter().map(ToString::to_string).collect();
    assert_eq!(
        (effects.len(), distinct.len()),
        (delivered.len(), delivered.len()),
        "each effect exactly once"
    );
    assert_eq!(TOPICS.map(|name| world.waiting(name)), [0, 0]);
}

#[test]
fn every_order_of_publishers_sweepers_and_consumers_ends_delivered_once() {
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(config, rng);
    runner
        .run(&prop::collection::vec(step(), 0..150), |steps| {
            check(&steps);
            Ok(())
        })
        .unwrap();
}
