//! Messages that are handled: once, whatever is repeated, raced or lost on the way.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::cell::{Cell, RefCell};

use common::*;
use futures_util::future::join;
use swarm_consumer_kit::{Delivery, End, Failure, Handled, Handler, Incoming};
use swarm_domain::limits::{HANDLE_LEASE_MS, PAYLOAD_INLINE_BYTES_MAX};
use swarm_domain::message::{Body, Message};
use swarm_native::{Fault, block_on};

#[test]
fn an_effect_happens_once_however_often_the_message_comes() {
    let (world, messages) = World::with_events(&["e1"]);
    let handler = Script::default();
    let first = world.consume(&handler, &messages);
    assert_eq!((ends(&first), acked(&first)), (vec![&End::Delivered], true));
    let second = world.consume(&handler, &again(&messages));
    assert_eq!((ends(&second), acked(&second)), (vec![&End::AtRest], true));
    assert_eq!(
        (world.effects(), world.dispatches()),
        (vec!["e1 1".to_owned()], vec!["e1 delivered".to_owned()])
    );
    assert_eq!(handler.seen_ids(), ["e1"]);
}

#[test]
fn a_handler_sees_the_event_as_it_was_published() {
    let world = World::new(1);
    let payload = "{ \"n\": 12345678901234567890,\n \"n\": 1.0 }";
    world.publish("acme", "e1", payload);
    let handler = Script::default();
    world.consume(&handler, &again(&world.take_messages()));
    let seen = handler.seen.borrow();
    assert_eq!((seen[0].payload.as_str(), seen[0].attempts), (payload, 2));
    assert_eq!((seen[0].envelope.event_type.as_str(), &seen[0].topic), ("billing.paid", &world.topic));
}

#[test]
fn a_lost_answer_to_the_settlement_repeats_nothing() {
    let (world, messages) = World::with_events(&["e1", "e2", "e3"]);
    world.shard().fail_at(1, Fault::AnswerLost);
    let calls = world.shard().calls();
    let verdicts = world.consume(&Script::default(), &messages);
    assert!(acked(&verdicts), "{verdicts:?}");
    assert_eq!(world.effects(), ["e1 1", "e2 1", "e3 1"]);
    assert_eq!(world.shard().calls() - calls, 4, "take, settle, settle again, look again");
}

#[test]
fn a_settlement_nobody_heard_of_is_found_at_the_next_delivery() {
    let (world, messages) = World::with_events(&["e1"]);
    world.shard().fail_at(1, Fault::AnswerLost);
    world.shard().fail_at(2, Fault::Refused);
    let verdicts = world.consume(&Script::default(), &messages);
    assert!(retried(&verdicts, 5), "{verdicts:?}");
    let verdicts = world.consume(&Script::default(), &again(&messages));
    assert_eq!((ends(&verdicts), acked(&verdicts)), (vec![&End::AtRest], true));
    assert_eq!(world.effects(), ["e1 1"]);
}

#[test]
fn a_lost_answer_to_the_lease_is_found_out_by_asking_again() {
    let (world, messages) = World::with_events(&["e1"]);
    world.shard().fail_at(0, Fault::AnswerLost);
    assert_eq!(ends(&world.consume(&Script::default(), &messages)), [&End::Delivered]);
}

#[test]
fn of_two_consumers_at_once_one_handles() {
    let (world, messages) = World::with_events(&["e1", "e2"]);
    let (one, two) = (Script::default(), Script::default());
    let (mut first, mut second) =
        block_on(join(world.consume_with(&one, &messages), world.consume_with(&two, &messages)));
    if ends(&first) != [&End::Delivered; 2] {
        std::mem::swap(&mut first, &mut second);
    }
    assert_eq!(ends(&first), [&End::Delivered; 2]);
    assert_eq!(ends(&second), [&End::Held; 2]);
    assert!(retried(&second, 5));
    assert_eq!(world.effects(), ["e1 1", "e2 1"]);
    assert_eq!(one.seen_ids().len() + two.seen_ids().len(), 2);
}

#[test]
fn a_message_that_stays_held_waits_for_the_lease_and_is_let_go_in_the_end() {
    let (world, messages) = World::with_events(&["e1"]);
    // The run that leases it never comes back.
    block_on(async {
        let held = [Message::decode(&messages[0].text).unwrap().generation()];
        swarm_domain::lease::take(world.shard(), &held, "dead", world_now(&world)).await.unwrap();
    });
    let handler = Script::default();
    assert!(retried(&world.consume(&handler, &again(&messages)), (HANDLE_LEASE_MS / 1_000) as u32));
    let last = world.consume(&handler, &last_attempt(&messages));
    assert_eq!((ends(&last), acked(&last)), (vec![&End::Held], true));
    assert_eq!(world.dispatches(), ["e1 enqueued held by dead"]);
    let due_with_the_lease = world.rows("SELECT next_retry_at = lease AS same FROM event_dispatches");
    assert_eq!(due_with_the_lease[0]["same"], 1);
    world.clock.advance_ms(HANDLE_LEASE_MS);
    assert_eq!(ends(&world.consume(&handler, &again(&messages))), [&End::Delivered]);
}

fn world_now(world: &World) -> swarm_domain::time::Timestamp {
    swarm_domain::ports::Clock::now(&world.clock)
}

/// Outlives its lease while another run does the work.
struct TooSlow<'a> {
    world: &'a World,
    messages: &'a [Incoming],
    other: Script,
}

impl Handler for TooSlow<'_> {
    async fn handle(&self, delivery: &Delivery) -> Result<Handled, Failure> {
        self.world.clock.advance_ms(HANDLE_LEASE_MS);
        Box::pin(self.world.consume_with(&self.other, self.messages)).await;
        Ok(Handled::with_effects(vec![effect(delivery)]))
    }
}

#[test]
fn a_run_that_lost_its_lease_leaves_no_effect_and_holds_up_nobody() {
    let (world, messages) = World::with_events(&["e1", "e2"]);
    let slow = TooSlow { world: &world, messages: &messages[..1], other: Script::default() };
    let verdicts = world.consume(&slow, &messages);
    assert_eq!((ends(&verdicts), acked(&verdicts)), (vec![&End::AtRest, &End::Delivered], true));
    assert_eq!(world.effects(), ["e1 1", "e2 1"]);
}

#[test]
fn a_lease_that_somebody_else_had_in_between_no_longer_counts() {
    let (world, messages) = World::with_events(&["e1"]);
    let failing = Script::failing("e1", [Failure::transient("busy")]);
    let slow = TooSlow { world: &world, messages: &messages, other: failing };
    // The other run has failed and given the lease back. Whether this one's work still holds nobody can tell.
    assert!(retried(&world.consume(&slow, &messages), 5));
    assert!(world.effects().is_empty());
    assert_eq!(ends(&world.consume(&Script::default(), &again(&messages))), [&End::Delivered]);
    assert_eq!(
        (world.effects(), world.dispatches()),
        (vec!["e1 1".to_owned()], vec!["e1 delivered".to_owned()])
    );
}

#[test]
fn a_large_payload_comes_from_the_blob_store() {
    let world = World::new(1);
    let payload = format!("\"{}\"", "a".repeat(PAYLOAD_INLINE_BYTES_MAX));
    world.publish("acme", "e1", &payload);
    let messages = world.take_messages();
    assert!(matches!(Message::decode(&messages[0].text).unwrap().body, Body::Blob(_)));
    let handler = Script::default();
    assert_eq!(ends(&world.consume(&handler, &messages)), [&End::Delivered]);
    assert_eq!(handler.seen.borrow()[0].payload, payload);
}

#[test]
fn copies_in_one_batch_are_handled_once() {
    let (world, messages) = World::with_events(&["e1", "e2"]);
    let batch = [messages[0].clone(), messages[1].clone(), messages[0].clone()];
    let handler = Script::failing("e1", [Failure::transient("busy")]);
    let verdicts = world.consume(&handler, &batch);
    assert_eq!(ends(&verdicts), [&End::Failed("busy".to_owned()), &End::Delivered, &End::Duplicate]);
    assert!(retried(&verdicts[..1], 5) && acked(&verdicts[1..]));
    assert_eq!(handler.seen_ids(), ["e1", "e2"]);
}

#[test]
fn a_batch_of_any_size_costs_two_round_trips_per_shard() {
    for (shards, count) in [(1, 1), (1, 50), (3, 50)] {
        let world = World::new(shards);
        for number in 0..count {
            world.publish(&format!("tenant-{number}"), &format!("e{number:02}"), "{}");
        }
        let messages = world.take_messages();
        let before = world.calls();
        let handler = Script::failing("e00", [Failure::permanent("no")]);
        let verdicts = world.consume(&handler, &messages);
        assert!(acked(&verdicts));
        let trips: Vec<usize> =
            world.calls().iter().zip(&before).map(|(after, before)| after - before).collect();
        assert_eq!(trips, vec![2; shards], "{count} messages on {shards} shards");
        assert_eq!(world.effects().len(), count - 1);
        assert!(handler.seen_ids().is_sorted(), "the queue's order survives the division into shards");
    }
}

/// Notes the size of each part and leaves out some results.
#[derive(Default)]
struct InParts {
    sizes: RefCell<Vec<usize>>,
    left_out: Cell<usize>,
}

impl Handler for InParts {
    async fn handle(&self, delivery: &Delivery) -> Result<Handled, Failure> {
        Ok(Handled::with_effects(vec![effect(delivery)]))
    }

    async fn handle_batch(&self, batch: &[Delivery]) -> Vec<Result<Handled, Failure>> {
        self.sizes.borrow_mut().push(batch.len());
        batch.iter().skip(self.left_out.get()).map(|_| Ok(Handled::done())).collect()
    }
}

#[test]
fn a_result_that_is_left_out_is_a_transient_failure() {
    let (world, messages) = World::with_events(&["e1", "e2"]);
    let handler = InParts { left_out: Cell::new(1), ..InParts::default() };
    let verdicts = world.consume(&handler, &messages);
    let missing = End::Failed("the handler gave no result".to_owned());
    assert_eq!(ends(&verdicts), [&End::Delivered, &missing]);
    assert_eq!(world.dispatches(), ["e1 delivered", "e2 enqueued: the handler gave no result"]);
}

#[test]
fn large_payloads_divide_a_batch_so_that_memory_suffices() {
    let world = World::new(1);
    for id in ["e1", "e2", "e3", "e4"] {
        world.publish("acme", id, &format!("\"{id}{}\"", "a".repeat(5 * 1024 * 1024)));
    }
    let handler = InParts::default();
    assert!(acked(&world.consume(&handler, &world.take_messages())));
    assert_eq!(*handler.sizes.borrow(), [2, 2]);
}

#[test]
fn a_message_of_an_earlier_generation_is_dropped_and_that_of_this_one_handled() {
    let (world, messages) = World::with_events(&["e1"]);
    world.repeat("e1");
    let message = Message { replay: 1, ..Message::decode(&messages[0].text).unwrap() };
    let repeated = Incoming { text: message.encode().unwrap(), attempts: 1 };
    let verdicts = world.consume(&Script::default(), &[messages[0].clone(), repeated]);
    assert_eq!((ends(&verdicts), acked(&verdicts)), (vec![&End::AtRest, &End::Delivered], true));
    assert_eq!(world.effects(), ["e1 1"]);
}
