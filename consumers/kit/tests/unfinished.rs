//! Messages whose handler never comes to an end: nothing loops for ever, nothing is lost, and no other message pays for it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use common::*;
use swarm_consumer_kit::{Delivery, End, Failure, Handled, Handler, Incoming};
use swarm_domain::limits::{HANDLE_LEASE_MS, HANDLE_STARTS_MAX, PAYLOAD_INLINE_BYTES_MAX};
use swarm_native::Fault;

const STALLED: &str = "the handler was started 3 times and never finished";

/// Handles every message but one, which it never comes back from.
struct Poisoned {
    poison: &'static str,
    starts: Cell<u32>,
}

impl Poisoned {
    fn by(poison: &'static str) -> Self {
        Self { poison, starts: Cell::new(0) }
    }
}

impl Handler for Poisoned {
    async fn handle(&self, delivery: &Delivery) -> Result<Handled, Failure> {
        if delivery.envelope.id == self.poison {
            self.starts.set(self.starts.get() + 1);
            std::future::pending::<()>().await;
        }
        Ok(Handled::with_effects(vec![effect(delivery)]))
    }
}

/// Consumes until the handler is stuck, and lets the run die there, as a panic or the platform's limits do.
fn die(world: &World, handler: &Poisoned, messages: &[Incoming]) {
    let (before, mut context) = (handler.starts.get(), Context::from_waker(Waker::noop()));
    let mut consuming = pin!(world.consume_with(handler, messages));
    while handler.starts.get() == before {
        if let Poll::Ready(verdicts) = consuming.as_mut().poll(&mut context) {
            panic!("it came to an end: {verdicts:?}");
        }
    }
}

fn starts(world: &World) -> Vec<i64> {
    let rows = world.rows("SELECT starts FROM event_dispatches ORDER BY event_id");
    rows.iter().map(|row| row["starts"].as_i64().unwrap()).collect()
}

#[test]
fn a_message_that_ends_every_run_takes_no_other_with_it() {
    let (world, messages) = World::with_events(&["e1", "e2", "e3"]);
    let handler = Poisoned::by("e2");
    die(&world, &handler, &messages);
    assert_eq!(ends(&world.consume(&handler, &again(&messages))), [&End::Held; 3]);
    assert_eq!(starts(&world), [1, 1, 1]);

    world.clock.advance_ms(HANDLE_LEASE_MS);
    die(&world, &handler, &again(&messages));
    assert_eq!(world.effects(), ["e1 1"], "handled alone, and recorded before the next one is started");
    assert_eq!(starts(&world), [0, 2, 1], "who was not started has not been counted");
    let verdicts = world.consume(&handler, &again(&messages));
    assert_eq!(ends(&verdicts), [&End::AtRest, &End::Held, &End::Delivered]);

    world.clock.advance_ms(HANDLE_LEASE_MS);
    die(&world, &handler, &messages[1..2]);
    world.clock.advance_ms(HANDLE_LEASE_MS);
    let verdicts = world.consume(&handler, &messages[1..2]);
    assert_eq!((ends(&verdicts), acked(&verdicts)), (vec![&End::DeadLettered(STALLED.to_owned())], true));
    assert_eq!(handler.starts.get(), HANDLE_STARTS_MAX);
    let delivered = |id: &str| format!("{id} delivered");
    assert_eq!(
        world.dispatches(),
        [delivered("e1"), format!("e2 dead_lettered: {STALLED}"), delivered("e3")]
    );
    assert_eq!(world.dead_letters()[0].error, STALLED);
    assert_eq!(world.effects(), ["e1 1", "e3 1"]);
}

#[test]
fn healthy_messages_are_recorded_before_a_suspect_is_started() {
    let (world, messages) = World::with_events(&["e1", "e2"]);
    let handler = Poisoned::by("e1");
    die(&world, &handler, &messages[..1]);
    world.clock.advance_ms(HANDLE_LEASE_MS);
    die(&world, &handler, &messages);
    assert_eq!((world.effects(), starts(&world)), (vec!["e2 1".to_owned()], vec![2, 0]));
}

#[test]
fn a_run_that_was_only_unlucky_is_made_good() {
    let (world, messages) = World::with_events(&["e1", "e2"]);
    die(&world, &Poisoned::by("e2"), &messages);
    world.clock.advance_ms(HANDLE_LEASE_MS);
    let handler = Script::failing("e2", [Failure::transient("busy")]);
    let verdicts = world.consume(&handler, &again(&messages));
    assert_eq!(ends(&verdicts), [&End::Delivered, &End::Failed("busy".to_owned())]);
    assert_eq!(starts(&world), [0, 0]);
    let calls = world.calls();
    assert_eq!(ends(&world.consume(&handler, &again(&messages))), [&End::AtRest, &End::Delivered]);
    assert_eq!(world.calls()[0] - calls[0], 2, "it is handled with the others again");
}

#[test]
fn a_payload_that_cannot_be_had_does_not_clear_a_suspect() {
    let world = World::new(1);
    world.publish("acme", "e1", &format!("\"{}\"", "x".repeat(PAYLOAD_INLINE_BYTES_MAX)));
    let messages = world.take_messages();
    let handler = Poisoned::by("e1");
    for n in 1..HANDLE_STARTS_MAX {
        die(&world, &handler, &messages);
        world.clock.advance_ms(HANDLE_LEASE_MS);
        world.blobs.fail_at(0, Fault::Refused);
        assert!(retried(&world.consume(&handler, &messages), 5));
        assert_eq!((handler.starts.get(), starts(&world)), (n, vec![i64::from(n)]));
    }
    die(&world, &handler, &messages);
    world.clock.advance_ms(HANDLE_LEASE_MS);
    assert_eq!(ends(&world.consume(&handler, &messages)), [&End::DeadLettered(STALLED.to_owned())]);
}

/// Brings the only dispatch to where it may not be started any more.
fn stalled() -> (World, Vec<Incoming>) {
    let (world, messages) = World::with_events(&["e1"]);
    let handler = Poisoned::by("e1");
    for _ in 0..HANDLE_STARTS_MAX {
        die(&world, &handler, &messages);
        world.clock.advance_ms(HANDLE_LEASE_MS);
    }
    (world, messages)
}

#[test]
fn a_stalled_message_stays_until_the_dead_letter_queue_takes_it() {
    let (world, messages) = stalled();
    let handler = Script::default();
    world.queues.fail_at(0, Fault::Refused);
    let verdicts = world.consume(&handler, &messages);
    assert!(retried(&verdicts, 5), "{verdicts:?}");
    assert_eq!(starts(&world), [i64::from(HANDLE_STARTS_MAX)], "no refusal makes it startable again");
    assert!(acked(&world.consume(&handler, &again(&messages))));
    assert_eq!((world.dead_letters().len(), handler.seen_ids().len()), (1, 0));
}

#[test]
fn the_ledger_does_not_answer_for_a_suspect() {
    let (world, messages) = World::with_events(&["e1"]);
    die(&world, &Poisoned::by("e1"), &messages);
    world.clock.advance_ms(HANDLE_LEASE_MS);
    // The batch is answered; the lease of the suspect is not, nor its repetition.
    for calls_ahead in [1, 2] {
        world.shard().fail_at(calls_ahead, Fault::Refused);
    }
    let handler = Script::default();
    assert!(retried(&world.consume(&handler, &messages), 5));
    assert_eq!((handler.seen_ids().len(), starts(&world)), (0, vec![1]));
    assert!(acked(&world.consume(&handler, &messages)));
}

#[test]
fn a_repetition_gives_a_stalled_message_new_starts() {
    let (world, messages) = stalled();
    world.consume(&Script::default(), &messages);
    world.repeat("e1");
    let message = swarm_domain::message::Message::decode(&messages[0].text).unwrap();
    let text = swarm_domain::message::Message { replay: 1, ..message }.encode().unwrap();
    let verdicts = world.consume(&Script::default(), &[Incoming { text, attempts: 1 }]);
    assert_eq!(ends(&verdicts), [&End::Delivered]);
}
