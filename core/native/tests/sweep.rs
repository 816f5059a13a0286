//! The sweeper on SQLite: it finds whatever was left behind, sends it, waits longer each time, and in the end gives up.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{MINUTE_MS, Trouble, World, event, event_of, fail_all_sends, incidents, rows, run, strand};
use futures_util::future::join;
use swarm_domain::limits::{IN_TRANSIT_DEADLINE_MS_DEFAULT, SEND_LEASE_MS, SWEEP_PAGE_MAX};
use swarm_domain::ports::{Clock, SendError};
use swarm_native::{Fault, block_on};

const PAID: &str = "billing.invoice.paid";
const BILLING: &str = "billing.events";
const AUDIT: &str = "audit.events";

#[test]
fn an_event_whose_accepter_died_is_found_once_its_claim_has_ended() {
    let world = World::new(1);
    fail_all_sends(&world, [event("e1", "shop.order.paid")]);
    world.clock.advance_ms(SEND_LEASE_MS - 1);
    assert_eq!(world.sweep().enqueued, 0, "the accepter may still be about to send");
    world.clock.advance_ms(1);
    assert_eq!(world.sweep().enqueued, 2);
    assert_eq!((world.waiting(BILLING), world.waiting(AUDIT)), (1, 1));
    assert_eq!(world.dispatches(), ["e1 audit.events enqueued", "e1 billing.events enqueued"]);
    assert_eq!(world.sweep().enqueued, 0);
}

#[test]
fn each_failed_send_doubles_the_wait_and_the_fifth_is_the_last() {
    let world = World::new(1);
    world.set_down(BILLING, true);
    world.publish(event("e1", PAID));
    for (attempts, minutes) in [(1, 2), (2, 4), (3, 8), (4, 16)] {
        let row = &world.rows("SELECT attempts FROM event_dispatches")[0];
        assert_eq!(row["attempts"], attempts);
        world.clock.advance_ms(minutes * MINUTE_MS - 1);
        assert_eq!(world.sweep(), Default::default(), "{minutes} minutes have not passed");
        world.clock.advance_ms(1);
        let swept = world.sweep();
        assert_eq!((swept.failed, swept.abandoned), if attempts < 4 { (1, 0) } else { (0, 1) });
    }
    world.set_down(BILLING, false);
    world.clock.advance_ms(IN_TRANSIT_DEADLINE_MS_DEFAULT);
    assert_eq!(world.sweep(), Default::default(), "what was given up stays so");
    let row = &world.rows("SELECT status, attempts, next_retry_at, last_error FROM event_dispatches")[0];
    let error = "Outbox sweeper retries exhausted: queue is down";
    let given_up = serde_json::json!({
        "status": "dlq_abandoned", "attempts": 5, "next_retry_at": null, "last_error": error
    });
    assert_eq!(*row, given_up);
    assert_eq!(incidents(&world), [format!("e1 {BILLING} abandoned billing-events 0: {error}")]);
}

#[test]
fn a_send_that_goes_well_before_the_last_keeps_the_count_of_attempts() {
    let world = World::new(1);
    world.set_down(BILLING, true);
    world.publish(event("e1", PAID));
    world.set_down(BILLING, false);
    world.clock.advance_ms(2 * MINUTE_MS);
    assert_eq!(world.sweep().enqueued, 1);
    assert_eq!(world.take(BILLING)[0].attempt, 2);
}

#[test]
fn two_sweepers_at_once_send_each_event_once() {
    for shards in [1, 3] {
        let world = World::new(shards);
        fail_all_sends(&world, (0..150).map(|n| event_of(&format!("tenant-{n}"), "e1", PAID, "{}")));
        world.clock.advance_ms(SEND_LEASE_MS);
        let (one, two) = block_on(join(world.sweep_with("one"), world.sweep_with("two")));
        assert_eq!(one.enqueued + two.enqueued, 150);
        let mut tenants: Vec<_> = world.take(BILLING).into_iter().map(|m| m.envelope.tenant_id).collect();
        tenants.sort();
        tenants.dedup();
        assert_eq!(tenants.len(), 150);
        assert_eq!(world.waiting(BILLING), 0);
    }
}

#[test]
fn two_sweepers_at_once_give_up_once() {
    let world = World::new(1);
    world.trouble(BILLING, Some(Trouble::Fails(SendError::NoQueue("Queue not found (10104)".to_owned()))));
    strand(&world, BILLING, 3);
    let (one, two) = block_on(join(world.sweep_with("one"), world.sweep_with("two")));
    assert_eq!(one.abandoned + two.abandoned, 3);
    assert_eq!(incidents(&world).len(), 3);
    assert!(world.rows("SELECT 1 AS n FROM dlq_incidents WHERE retry_count > 0").is_empty());
}

#[test]
fn the_watchdog_sends_again_what_stayed_enqueued_for_too_long() {
    let world = World::new(1);
    world.publish(event("e1", PAID));
    world.take(BILLING);
    world.clock.advance_ms(IN_TRANSIT_DEADLINE_MS_DEFAULT - 1);
    assert_eq!(world.sweep().enqueued, 0);
    world.clock.advance_ms(1);
    assert_eq!(world.sweep().enqueued, 1);
    assert_eq!(world.waiting(BILLING), 1);
    assert_eq!(world.dispatches(), ["e1 billing.events enqueued"]);
    world.set_down(BILLING, true);
    world.clock.advance_ms(IN_TRANSIT_DEADLINE_MS_DEFAULT);
    assert_eq!(world.sweep().failed, 1);
    assert_eq!(world.dispatches(), ["e1 billing.events failed"]);
}

#[test]
fn a_dead_topic_with_ten_thousand_dispatches_holds_up_no_other() {
    let world = World::new(1);
    world.set_down(BILLING, true);
    strand(&world, BILLING, 10_000);
    strand(&world, AUDIT, 250);
    let calls = world.shard().calls() + world.queues.calls();
    let swept = world.sweep();
    assert_eq!((swept.enqueued, swept.failed), (250, SWEEP_PAGE_MAX));
    assert_eq!(world.waiting(AUDIT), 250);
    let calls = world.shard().calls() + world.queues.calls() - calls;
    assert!(calls <= 1 + 3 + (4 + 3), "one round for the dead topic, three for the other: {calls}");
    // The failures were recorded, so the next run goes on with others.
    assert_eq!(world.sweep().failed, SWEEP_PAGE_MAX);
    let tried =
        world.rows("SELECT count(*) AS n FROM event_dispatches WHERE attempts = 1 AND status = 'failed'");
    assert_eq!(tried[0]["n"], 2 * SWEEP_PAGE_MAX);
    world.set_down(BILLING, false);
    assert_eq!(world.sweep().enqueued, 10_000 - 2 * SWEEP_PAGE_MAX);
    world.clock.advance_ms(2 * MINUTE_MS);
    assert_eq!(world.sweep().enqueued, 2 * SWEEP_PAGE_MAX);
}

#[test]
fn a_row_that_cannot_be_read_is_given_up_and_holds_up_no_other() {
    let world = World::new(1);
    fail_all_sends(&world, ["bad", "good", "odd"].map(|id| event(id, PAID)));
    let database = world.shard().port();
    run(database, "UPDATE event_ledger SET context = '[1]' WHERE event_id = 'bad'", Vec::new());
    run(database, "UPDATE event_dispatches SET topic = 'No Topic' WHERE event_id = 'odd'", Vec::new());
    world.clock.advance_ms(SEND_LEASE_MS);
    let swept = world.sweep();
    assert_eq!((swept.enqueued, swept.abandoned, swept.errors.len()), (1, 2, 0), "{swept:?}");
    assert_eq!(world.take(BILLING)[0].envelope.id, "good");
    let incidents = incidents(&world);
    assert_eq!(incidents.len(), 2);
    assert!(
        incidents[0].starts_with("bad billing.events abandoned billing-events 0: the stored event makes")
    );
    assert!(incidents[1].starts_with("odd No Topic abandoned No Topic 0: the stored event makes no message"));
    assert_eq!(world.sweep(), Default::default());
}

#[test]
fn a_message_that_no_queue_would_take_is_given_up_without_asking_one() {
    let world = World::new(1);
    strand(&world, BILLING, 2);
    let large = format!("\"{}\"", "x".repeat(128_000));
    let grow = "UPDATE event_ledger SET payload = ?1 WHERE event_id = 'e00001'";
    run(world.shard().port(), grow, vec![large.into()]);
    let swept = world.sweep();
    assert_eq!((swept.enqueued, swept.abandoned), (1, 1));
    assert!(incidents(&world)[0].contains("bytes is more than a queue takes"), "{:?}", incidents(&world));
}

#[test]
fn permanent_errors_give_up_at_once_and_others_do_not() {
    for (error, is_permanent) in [
        (SendError::NoBinding("TOPIC_BILLING_EVENTS".to_owned()), true),
        (SendError::NoQueue("Queue not found (10104)".to_owned()), true),
        (SendError::Rejected("Message metadata is invalid (10203)".to_owned()), true),
        (SendError::Refused("Queue is overloaded (10250)".to_owned()), false),
    ] {
        let world = World::new(1);
        strand(&world, BILLING, 1);
        world.trouble(BILLING, Some(Trouble::Fails(error.clone())));
        let swept = world.sweep();
        assert_eq!((swept.abandoned, swept.failed), if is_permanent { (1, 0) } else { (0, 1) }, "{error}");
        let expected: Vec<String> = vec![format!("e00001 {BILLING} abandoned billing-events 0: {error}")];
        assert_eq!(incidents(&world), if is_permanent { expected } else { Vec::new() });
    }
}

#[test]
fn a_topic_without_a_binding_gives_up_one_page_a_run() {
    let world = World::new(1);
    world.trouble(BILLING, Some(Trouble::Fails(SendError::NoBinding("TOPIC_BILLING_EVENTS".to_owned()))));
    strand(&world, BILLING, 3 * SWEEP_PAGE_MAX);
    let sends = world.queues.calls();
    assert_eq!(world.sweep().abandoned, SWEEP_PAGE_MAX);
    assert_eq!(world.queues.calls() - sends, 1);
}

#[test]
fn one_message_that_is_rejected_takes_no_other_of_its_batch_with_it() {
    let world = World::new(1);
    strand(&world, BILLING, SWEEP_PAGE_MAX + 1);
    let error = SendError::Rejected("Message metadata is invalid (10203)".to_owned());
    world.trouble(BILLING, Some(Trouble::Dislikes("e00042", error)));
    let sends = world.queues.calls();
    let swept = world.sweep();
    assert_eq!((swept.enqueued, swept.abandoned), (SWEEP_PAGE_MAX, 1));
    assert!(world.queues.calls() - sends <= 16, "halves, and no search through all");
    assert!(incidents(&world)[0].starts_with("e00042 "), "{:?}", incidents(&world));
}

#[test]
fn a_shard_that_is_down_does_not_hold_up_the_others() {
    let world = World::new(3);
    fail_all_sends(&world, (0..12).map(|n| event_of(&format!("tenant-{n}"), "e1", PAID, "{}")));
    world.shard().fail_always(Fault::Refused);
    world.clock.advance_ms(SEND_LEASE_MS);
    let swept = world.sweep();
    let in_first = (0..12).filter(|n| world.ledger.shard_of(&format!("tenant-{n}")) == 0).count();
    assert_eq!((swept.enqueued, swept.errors.len()), (12 - in_first, 1));
    world.shard().heal();
    assert_eq!(world.sweep().enqueued, in_first);
}

#[test]
fn a_dead_letter_that_nobody_archived_gets_its_incident_once() {
    let world = World::new(1);
    strand(&world, BILLING, 2);
    let dead =
        "UPDATE event_dispatches SET status = 'dead_lettered', last_error = 'no such customer', replays = 1
                 WHERE event_id = 'e00001'";
    run(world.shard().port(), dead, Vec::new());
    let (one, two) = block_on(join(world.sweep_with("one"), world.sweep_with("two")));
    assert_eq!((one.archived + two.archived, one.enqueued + two.enqueued), (1, 1));
    let expected = [format!("e00001 {BILLING} dead_letter billing-events 1: no such customer")];
    assert_eq!(incidents(&world), expected);
    let row = &world.rows("SELECT status, next_retry_at FROM event_dispatches WHERE event_id = 'e00001'")[0];
    assert_eq!(*row, serde_json::json!({"status": "dead_lettered", "next_retry_at": null}));
    assert_eq!(world.sweep(), Default::default());
}

#[test]
fn what_a_consumer_is_working_on_is_left_alone_until_its_lease_ends() {
    let world = World::new(1);
    strand(&world, BILLING, 2);
    let until = world.clock.now().plus_ms(MINUTE_MS);
    let lease = "UPDATE event_dispatches SET lease = ?1, lease_holder = 'consumer' WHERE event_id = 'e00001'";
    run(world.shard().port(), lease, vec![until.into()]);
    assert_eq!(world.sweep().enqueued, 1);
    world.clock.advance_ms(MINUTE_MS);
    assert_eq!(world.sweep().enqueued, 1);
}

#[test]
fn a_page_is_bounded_in_bytes_and_its_batches_keep_to_the_limits_of_the_queue() {
    let world = World::new(1);
    let large = format!("\"{}\"", "x".repeat(60_000));
    fail_all_sends(&world, (0..40).map(|n| event_of("acme", &format!("large-{n:02}"), PAID, &large)));
    fail_all_sends(&world, (0..SWEEP_PAGE_MAX).map(|n| event(&format!("small-{n:02}"), PAID)));
    world.clock.advance_ms(SEND_LEASE_MS);
    let (sends, round_trips) = (world.queues.calls(), world.shard().calls());
    let swept = world.sweep();
    // The queues refuse what is beyond their limits, so nothing failed means that no batch was.
    assert_eq!((swept.enqueued, swept.failed), (40 + SWEEP_PAGE_MAX, 0));
    // A page holds 17 of the large ones and a batch four; the last page takes the rest and the small ones.
    assert_eq!(world.shard().calls() - round_trips, 1 + 4 + 1);
    let sends = world.queues.calls() - sends;
    assert!((10..=16).contains(&sends), "{sends} batches");
    assert!(
        rows(world.shard().port(), "SELECT 1 AS n FROM event_dispatches WHERE status <> 'enqueued'")
            .is_empty()
    );
}

#[test]
fn a_dispatch_costs_one_write_and_a_page_one_round_trip() {
    let world = World::new(1);
    strand(&world, BILLING, 1_000);
    let (sends, round_trips) = (world.queues.calls(), world.shard().calls());
    let changes = || world.shard().port().connection().total_changes();
    let before = changes();
    assert_eq!(world.sweep().enqueued, 1_000);
    let round_trips = world.shard().calls() - round_trips;
    assert!(round_trips <= 1_000 / 50, "{round_trips} round trips");
    assert!(world.queues.calls() - sends <= 10);
    // Each dispatch once, and the lane once a round trip. Index entries are counted by tests/e2e/costs.test.mjs.
    let changes = changes() - before;
    assert!(changes <= 1_000 + round_trips as u64, "{changes} rows");
}
