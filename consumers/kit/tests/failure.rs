//! Messages that are not handled: they come again, or end among the dead letters with their reason, and are never nowhere.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::*;
use swarm_consumer_kit::{Delivery, End, Failure, Handled, Handler, Incoming};
use swarm_domain::limits::{PAYLOAD_INLINE_BYTES_MAX, QUEUE_MESSAGE_BYTES_MAX};
use swarm_domain::ports::{Blobs, Statement};
use swarm_native::{Fault, MemoryBlobs, block_on};

#[test]
fn a_transient_failure_gives_the_lease_back_and_comes_again_later() {
    let (world, mut messages) = World::with_events(&["e1"]);
    let handler = Script::failing("e1", [Failure::transient("busy"), Failure::transient("still busy")]);
    for (wait, error) in [(5, "busy"), (10, "still busy")] {
        let verdicts = world.consume(&handler, &messages);
        assert_eq!(ends(&verdicts), [&End::Failed(error.to_owned())]);
        assert!(retried(&verdicts, wait));
        assert_eq!(world.dispatches(), [format!("e1 enqueued: {error}")]);
        messages = again(&messages);
    }
    assert_eq!(ends(&world.consume(&handler, &messages)), [&End::Delivered]);
    assert_eq!(
        (world.effects(), world.dispatches()),
        (vec!["e1 1".to_owned()], vec!["e1 delivered".to_owned()])
    );
}

#[test]
fn a_permanent_failure_becomes_a_dead_letter_with_its_error() {
    let (world, messages) = World::with_events(&["e1", "e2"]);
    let verdicts = world.consume(&Script::failing("e1", [Failure::permanent("no invoice")]), &messages);
    assert_eq!(ends(&verdicts), [&End::DeadLettered("no invoice".to_owned()), &End::Delivered]);
    assert!(acked(&verdicts));
    assert_eq!(world.dispatches(), ["e1 dead_lettered: no invoice", "e2 delivered"]);
    let letters = world.dead_letters();
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].v, letters[0].attempts), (1, 1));
    let stack = letters[0].stack.as_deref().unwrap();
    assert!(stack.starts_with(&format!("at {}:", file!())), "{stack}");
    assert_eq!(
        (letters[0].error.as_str(), letters[0].source_queue.as_str()),
        ("no invoice", "billing-events")
    );
    assert_eq!(
        (&letters[0].message, letters[0].failed_at.as_str()),
        (&messages[0].text, "2026-01-01T00:00:00.000Z")
    );
}

#[test]
fn the_last_attempt_ends_among_the_dead_letters() {
    let (world, messages) = World::with_events(&["e1"]);
    let verdicts =
        world.consume(&Script::failing("e1", [Failure::transient("busy")]), &last_attempt(&messages));
    assert!(acked(&verdicts));
    assert_eq!(world.dispatches(), ["e1 dead_lettered: busy"]);
    assert_eq!(world.dead_letters()[0].attempts, MAX_RETRIES + 1);
}

#[test]
fn a_dead_letter_is_sent_before_anything_is_recorded() {
    let (world, messages) = World::with_events(&["e1"]);
    world.queues.fail_at(0, Fault::Refused);
    let verdicts = world.consume(&Script::failing("e1", [Failure::permanent("no")]), &messages);
    assert!(retried(&verdicts, 5));
    let reason = "no (and the dead-letter queue did not take it: fault injected by a test)";
    assert_eq!(world.dispatches(), [format!("e1 enqueued: {reason}")]);
    assert!(world.dead_letters().is_empty());
    world.consume(&Script::failing("e1", [Failure::permanent("no")]), &again(&messages));
    assert_eq!(
        (world.dispatches(), world.dead_letters().len()),
        (vec!["e1 dead_lettered: no".to_owned()], 1)
    );
}

#[test]
fn a_dead_letter_that_the_ledger_did_not_hear_of_is_not_handled_again() {
    let (world, messages) = World::with_events(&["e1"]);
    world.shard().fail_at(1, Fault::Refused);
    world.shard().fail_at(2, Fault::Refused);
    let verdicts = world.consume(&Script::failing("e1", [Failure::permanent("no")]), &messages);
    assert_eq!((acked(&verdicts), world.dead_letters().len()), (true, 1));
}

#[test]
fn what_is_not_ours_goes_to_the_dead_letters_to_the_byte() {
    let (world, messages) = World::with_events(&["e1"]);
    let stranger = messages[0].text.replacen("\"e1\"", "\"e9\"", 1);
    let foreign = messages[0].text.replacen("billing.events", "audit.events", 1);
    let batch: Vec<_> =
        ["hello \u{0}".to_owned(), stranger.clone(), foreign.clone(), messages[0].text.clone()]
            .into_iter()
            .map(|text| Incoming { text, attempts: 1 })
            .collect();
    let verdicts = world.consume(&Script::default(), &batch);
    assert!(acked(&verdicts));
    assert_eq!(verdicts[3].end, End::Delivered);
    let named: Vec<bool> = verdicts.iter().map(|verdict| verdict.key.is_some()).collect();
    assert_eq!(named, [false, true, true, true]);
    let letters = world.dead_letters();
    for (reason, text) in [
        ("not a message of this gateway", "hello \u{0}"),
        ("the ledger does not know", stranger.as_str()),
        ("a message to audit.events in the queue of billing.events", foreign.as_str()),
    ] {
        let letter = letters.iter().find(|letter| letter.error.contains(reason)).unwrap();
        assert_eq!(letter.message, text);
    }
    assert_eq!(letters.len(), 3);
}

#[test]
fn what_is_not_ours_stays_if_the_dead_letter_queue_is_down() {
    let world = World::new(1);
    world.queues.fail_always(Fault::Refused);
    let batch = [Incoming { text: "hello".to_owned(), attempts: 2 }];
    let verdicts = world.consume(&Script::default(), &batch);
    assert!(retried(&verdicts, 10));
    assert!(matches!(&verdicts[0].end, End::Failed(error) if error.contains("not a message")));
}

#[test]
fn a_letter_too_large_for_a_queue_goes_bare() {
    let world = World::new(1);
    let text = "\"".repeat(QUEUE_MESSAGE_BYTES_MAX - 1_000);
    let verdicts = world.consume(&Script::default(), &[Incoming { text: text.clone(), attempts: 1 }]);
    assert!(acked(&verdicts));
    assert_eq!(world.queues.port().take_dead_letters(&world.topic), [text]);
}

#[test]
fn a_ledger_that_is_down_sends_nothing_to_the_dead_letters() {
    let (world, messages) = World::with_events(&["e1"]);
    world.shard().fail_always(Fault::Refused);
    let handler = Script::default();
    assert!(retried(&world.consume(&handler, &messages), 5));
    assert!(retried(&world.consume(&handler, &again(&messages)), 20));
    assert!(handler.seen_ids().is_empty() && world.dead_letters().is_empty());
    world.shard().heal();
    assert_eq!(ends(&world.consume(&handler, &again(&messages))), [&End::Delivered]);
}

#[test]
fn a_shard_that_is_down_holds_up_no_other() {
    let world = World::new(3);
    for number in 0..12 {
        world.publish(&format!("tenant-{number}"), &format!("e{number:02}"), "{}");
    }
    world.ledger.shard(1).fail_always(Fault::Refused);
    let verdicts = world.consume(&Script::default(), &world.take_messages());
    for verdict in &verdicts {
        let down = world.ledger.shard_of(&verdict.key.as_ref().unwrap().tenant_id) == 1;
        assert_eq!(verdict.end == End::Delivered, !down, "{verdict:?}");
    }
    assert!(verdicts.iter().any(|verdict| verdict.end != End::Delivered));
}

#[test]
fn a_payload_that_is_missing_or_damaged_is_tried_until_the_last_attempt() {
    let mut world = World::new(1);
    world.publish("acme", "e1", &format!("\"{}\"", "a".repeat(PAYLOAD_INLINE_BYTES_MAX)));
    let messages = world.take_messages();
    let key = world.blobs.port().keys().remove(0);

    let blobs = world.blobs.clone();
    world.blobs = swarm_native::Flaky::new(MemoryBlobs::new());
    let handler = Script::default();
    assert!(retried(&world.consume(&handler, &messages), 5));
    assert!(world.dispatches()[0].ends_with("is not in the blob store"));

    block_on(world.blobs.port().put(&key, b"\"other\"".to_vec())).unwrap();
    assert!(retried(&world.consume(&handler, &messages), 5));
    assert!(world.dispatches()[0].ends_with("is not what was stored under this key"));

    world.blobs = blobs;
    world.blobs.fail_at(0, Fault::Refused);
    assert!(acked(&world.consume(&handler, &last_attempt(&messages))));
    assert!(world.dispatches()[0].starts_with("e1 dead_lettered: payload payloads/"));
    assert!(handler.seen_ids().is_empty());
}

/// Returns an effect for `bad` that the database refuses.
struct Refused {
    bad: &'static str,
    sql: &'static str,
}

impl Handler for Refused {
    async fn handle(&self, delivery: &Delivery) -> Result<Handled, Failure> {
        let mut effects = vec![effect(delivery)];
        if delivery.envelope.id == self.bad {
            effects.push(Statement::new(self.sql, Vec::new()));
        }
        Ok(Handled::with_effects(effects))
    }
}

#[test]
fn a_refused_effect_undoes_its_own_message_and_no_other() {
    for (sql, reason) in [
        ("INSERT INTO billing_invoices_paid (tenant_id) VALUES (NULL)", "NOT NULL constraint failed"),
        ("INSERT INTO no_such_table VALUES (1)", "no such table"),
    ] {
        let (world, messages) = World::with_events(&["e1", "e2", "e3", "e4", "e5"]);
        let handler = Refused { bad: "e4", sql };
        let verdicts = world.consume(&handler, &messages);
        assert!(
            retried(&verdicts[3..4], 5) && acked(&verdicts[..3]) && acked(&verdicts[4..]),
            "{verdicts:?}"
        );
        assert_eq!(world.effects(), ["e1 1", "e2 1", "e3 1", "e5 1"]);
        let line = world.dispatches().remove(3);
        assert!(
            line.starts_with("e4 enqueued: its effects were refused:") && line.contains(reason),
            "{line}"
        );

        let verdicts = world.consume(&handler, &last_attempt(&messages));
        assert!(acked(&verdicts));
        assert!(world.dispatches().remove(3).starts_with("e4 dead_lettered: its effects were refused:"));
        assert_eq!(world.dead_letters().len(), 1);
    }
}
