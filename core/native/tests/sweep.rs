//! The sweeper on SQLite: it finds whatever was left behind, sends it once, and waits longer each time.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{MINUTE_MS, World, event, event_of, recorded, run};
use futures_util::future::join;
use swarm_domain::limits::{
    IN_TRANSIT_DEADLINE_MS_DEFAULT, PAYLOAD_INLINE_BYTES_MAX, QUEUE_BATCH_BYTES_MAX,
    QUEUE_BATCH_MESSAGES_MAX, SEND_LEASE_MS, SWEEP_CLAIM_MAX,
};
use swarm_domain::ports::Clock;
use swarm_domain::receipt::ReceiptStatus;
use swarm_native::{Fault, block_on};

const PAID: &str = "billing.invoice.paid";

#[test]
fn an_event_whose_accepter_died_is_found_once_its_claim_has_ended() {
    let world = World::new(1);
    world.queues.fail_always(Fault::Refused);
    world.accept_one(event("e1", "shop.order.paid"));
    world.queues.heal();
    world.clock.advance_ms(SEND_LEASE_MS - 1);
    assert_eq!(world.sweep().enqueued, 0, "the accepter may still be about to send");
    world.clock.advance_ms(1);
    assert_eq!(world.sweep().enqueued, 2);
    assert_eq!((world.waiting("billing.events"), world.waiting("audit.events")), (1, 1));
    assert_eq!(world.dispatches(), ["e1 audit.events enqueued", "e1 billing.events enqueued"]);
    assert_eq!(world.sweep().enqueued, 0);
}

#[test]
fn each_failed_send_doubles_the_wait() {
    let world = World::new(1);
    world.set_down("billing.events", true);
    world.publish(event("e1", PAID));
    for (attempts, minutes) in [(1, 2), (2, 4), (3, 8), (4, 16)] {
        let row = &world.rows("SELECT attempts FROM event_dispatches")[0];
        assert_eq!(row["attempts"], attempts);
        world.clock.advance_ms(minutes * MINUTE_MS - 1);
        assert_eq!(world.sweep().failed, 0, "{minutes} minutes have not passed");
        world.clock.advance_ms(1);
        assert_eq!(world.sweep().failed, 1);
    }
    world.set_down("billing.events", false);
    world.clock.advance_ms(32 * MINUTE_MS);
    assert_eq!(world.sweep().enqueued, 1);
    assert_eq!(world.take("billing.events")[0].attempt, 6);
}

#[test]
fn two_sweepers_at_once_send_each_event_once() {
    for shards in [1, 3] {
        let world = World::new(shards);
        world.queues.fail_always(Fault::Refused);
        for n in 0..150 {
            world.accept_one(event_of(&format!("tenant-{n}"), "e1", PAID, "{}"));
        }
        world.queues.heal();
        world.clock.advance_ms(SEND_LEASE_MS);
        let (one, two) = block_on(join(world.sweep_with("one"), world.sweep_with("two")));
        assert_eq!(one.enqueued + two.enqueued, 150);
        let mut tenants: Vec<_> =
            world.take("billing.events").into_iter().map(|m| m.envelope.tenant_id).collect();
        tenants.sort();
        tenants.dedup();
        assert_eq!(tenants.len(), 150);
        assert_eq!(world.waiting("billing.events"), 0);
    }
}

#[test]
fn the_watchdog_sends_again_what_stayed_enqueued_for_too_long() {
    let world = World::new(1);
    world.publish(event("e1", PAID));
    world.take("billing.events");
    world.clock.advance_ms(IN_TRANSIT_DEADLINE_MS_DEFAULT - 1);
    assert_eq!(world.sweep().enqueued, 0);
    world.clock.advance_ms(1);
    assert_eq!(world.sweep().enqueued, 1);
    assert_eq!(world.waiting("billing.events"), 1);
    assert_eq!(world.dispatches(), ["e1 billing.events enqueued"]);
}

#[test]
fn a_topic_that_is_down_does_not_hold_up_the_others() {
    let world = World::new(1);
    world.set_down("billing.events", true);
    world.set_down("audit.events", true);
    // Enough to fill several claims with nothing but the topic that stays down, all of them older than the others.
    for n in 0..3 * SWEEP_CLAIM_MAX {
        world.publish(event(&format!("old-{n}"), PAID));
    }
    world.clock.advance_ms(1);
    for n in 0..10 {
        world.publish(event(&format!("new-{n}"), "shop.order.paid"));
    }
    world.set_down("audit.events", false);
    world.clock.advance_ms(5 * MINUTE_MS);
    let swept = world.sweep();
    assert_eq!((swept.enqueued, swept.failed), (10, 3 * SWEEP_CLAIM_MAX + 10));
    assert_eq!(world.waiting("audit.events"), 10);
}

#[test]
fn a_row_that_cannot_be_read_does_not_hold_up_the_others() {
    let world = World::new(1);
    world.queues.fail_always(Fault::Refused);
    for id in ["bad", "good", "odd"] {
        world.accept_one(event(id, PAID));
    }
    world.queues.heal();
    run(world.shard().port(), "UPDATE event_ledger SET context = '[1]' WHERE event_id = 'bad'", Vec::new());
    run(
        world.shard().port(),
        "UPDATE event_dispatches SET topic = 'No Topic' WHERE event_id = 'odd'",
        Vec::new(),
    );
    world.clock.advance_ms(SEND_LEASE_MS);
    let swept = world.sweep();
    assert_eq!(swept.enqueued, 1);
    assert_eq!(swept.errors.len(), 2, "both are reported: {:?}", swept.errors);
    assert_eq!(world.take("billing.events")[0].envelope.id, "good");
}

#[test]
fn a_shard_that_is_down_does_not_hold_up_the_others() {
    let world = World::new(3);
    world.queues.fail_always(Fault::Refused);
    for n in 0..12 {
        world.accept_one(event_of(&format!("tenant-{n}"), "e1", PAID, "{}"));
    }
    world.queues.heal();
    world.shard().fail_always(Fault::Refused);
    world.clock.advance_ms(SEND_LEASE_MS);
    let swept = world.sweep();
    let in_first = (0..12).filter(|n| world.ledger.shard_of(&format!("tenant-{n}")) == 0).count();
    assert_eq!((swept.enqueued, swept.errors.len()), (12 - in_first, 1));
    world.shard().heal();
    assert_eq!(world.sweep().enqueued, in_first);
}

#[test]
fn batches_keep_to_the_limits_of_the_queue() {
    let world = World::new(1);
    world.queues.fail_always(Fault::Refused);
    let large = format!("\"{}\"", "x".repeat(PAYLOAD_INLINE_BYTES_MAX - 2));
    for n in 0..7 {
        world.accept_one(event_of("acme", &format!("large-{n}"), PAID, &large));
    }
    for n in 0..SWEEP_CLAIM_MAX {
        world.accept_one(event(&format!("small-{n}"), PAID));
    }
    world.queues.heal();
    world.clock.advance_ms(SEND_LEASE_MS);
    let sends = world.queues.calls();
    let swept = world.sweep();
    // The queues refuse what is beyond their limits, so nothing failed means that no batch was.
    assert_eq!((swept.enqueued, swept.failed), (7 + SWEEP_CLAIM_MAX, 0));
    let per_batch = QUEUE_BATCH_BYTES_MAX / PAYLOAD_INLINE_BYTES_MAX;
    let batches_of_large = 7_usize.div_ceil(per_batch);
    assert!(
        world.queues.calls() - sends
            <= batches_of_large + 2 * SWEEP_CLAIM_MAX.div_ceil(QUEUE_BATCH_MESSAGES_MAX)
    );
}

#[test]
fn a_lost_answer_of_the_claim_or_of_the_settlement_changes_nothing() {
    for call in 0..2 {
        let world = World::new(1);
        world.queues.fail_always(Fault::Refused);
        world.accept_one(event("e1", PAID));
        world.queues.heal();
        world.clock.advance_ms(SEND_LEASE_MS);
        world.shard().fail_at(call, Fault::AnswerLost);
        assert_eq!(world.sweep().enqueued, 1, "call {call}");
        assert_eq!(world.waiting("billing.events"), 1);
        assert_eq!(world.dispatches(), ["e1 billing.events enqueued"]);
    }
}

#[test]
fn a_settlement_that_comes_too_late_does_not_touch_the_next_claim() {
    let world = World::new(1);
    let accepted = block_on(world.accept(vec![event("e1", PAID)]));
    assert_eq!(recorded(&accepted.receipts[0]).status, ReceiptStatus::Enqueued);
    world.clock.advance_ms(SEND_LEASE_MS);
    world.set_down("billing.events", true);
    assert_eq!(world.sweep().failed, 1, "the sweeper cannot know that the first send went well");
    let late = swarm_domain::settle::settle(&world.ledger, accepted.settlements, world.clock.now(), 1);
    block_on(late).unwrap();
    assert_eq!(world.dispatches(), ["e1 billing.events failed"]);
}

#[test]
fn a_run_ends_at_its_deadline() {
    let world = World::new(1);
    world.queues.fail_always(Fault::Refused);
    world.accept_one(event("e1", PAID));
    world.clock.advance_ms(SEND_LEASE_MS);
    let sweeper = swarm_domain::sweep::Sweeper {
        ledger: &world.ledger,
        queues: &world.queues,
        clock: &world.clock,
        in_transit_deadline_ms: 1,
    };
    let calls = world.shard().calls();
    assert_eq!(block_on(sweeper.sweep("late", world.clock.now())), Default::default());
    assert_eq!(world.shard().calls(), calls);
}
