//! The sweeper when things go wrong half way: runs that die, answers that are lost, queues that hang, lanes and rows that
//! others take meanwhile, budgets that end. Whatever happens, the next run must find and finish the rest.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use common::{CALLS, MINUTE_MS, Trouble, World, event, incidents, recorded, run, strand};
use swarm_domain::limits::{SEND_LEASE_MS, SWEEP_LANE_MS, SWEEP_PAGE_MAX};
use swarm_domain::ports::{Clock, SendError};
use swarm_domain::receipt::ReceiptStatus;
use swarm_domain::sweep::{Budget, Swept};
use swarm_native::{Fault, block_on};

const PAID: &str = "billing.invoice.paid";
const BILLING: &str = "billing.events";
const AUDIT: &str = "audit.events";

/// Gives a future so many turns, and tells whether it came to its end.
fn poll<F: Future>(future: std::pin::Pin<&mut F>, turns: usize) -> Option<F::Output> {
    let mut future = future;
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..turns {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
    }
    None
}

/// Something of everything: more than a page, a topic that gives up, a dead letter that nobody archived.
fn mixed() -> World {
    let world = World::new(1);
    strand(&world, AUDIT, SWEEP_PAGE_MAX + 20);
    strand(&world, BILLING, 10);
    world.trouble(BILLING, Some(Trouble::Fails(SendError::NoQueue("Queue not found (10104)".to_owned()))));
    let dead = "UPDATE event_dispatches SET status = 'dead_lettered' WHERE event_id = 'e00005' AND topic = 'billing.events'";
    run(world.shard().port(), dead, Vec::new());
    world
}

fn assert_all_is_settled(world: &World, what: &str) {
    let counts = "SELECT topic || ' ' || status || ' ' || count(*) AS line FROM event_dispatches
                   WHERE status <> 'dead_lettered' OR next_retry_at IS NULL GROUP BY topic, status ORDER BY 1";
    let lines: Vec<_> =
        world.rows(counts).iter().map(|row| row["line"].as_str().unwrap().to_owned()).collect();
    let expected =
        ["audit.events enqueued 120", "billing.events dead_lettered 1", "billing.events dlq_abandoned 9"];
    assert_eq!(lines, expected, "{what}");
    assert_eq!(incidents(world).len(), 10, "{what}");
    assert!(world.rows("SELECT 1 AS n FROM dlq_incidents WHERE retry_count > 0").is_empty(), "{what}");
    let mut sent: Vec<_> = world.take(AUDIT).into_iter().map(|message| message.envelope.id).collect();
    sent.sort();
    sent.dedup();
    assert_eq!(sent.len(), SWEEP_PAGE_MAX + 20, "{what}");
}

#[test]
fn a_run_may_die_anywhere_and_the_next_one_finishes() {
    for turns in 0.. {
        let world = mixed();
        let ended = poll(pin!(world.sweep_with("dies")), turns).is_some();
        world.clock.advance_ms(SWEEP_LANE_MS);
        assert_eq!(world.sweep().errors, []);
        assert_all_is_settled(&world, &format!("after {turns} turns"));
        if ended {
            assert!(turns > 5, "{turns} turns are no run");
            return;
        }
    }
}

#[test]
fn any_answer_of_the_database_may_be_lost_and_any_call_of_it_may_fail() {
    for fault in [Fault::AnswerLost, Fault::Refused] {
        for call in 0.. {
            let world = mixed();
            let before = world.shard().calls();
            world.shard().fail_at(call, fault);
            assert_eq!(world.sweep().errors, [], "{fault:?} at call {call} is repaired by a second try");
            assert_all_is_settled(&world, &format!("{fault:?} at call {call}"));
            if world.shard().calls() - before <= call {
                break;
            }
        }
    }
}

#[test]
fn a_database_that_stays_away_leaves_everything_due() {
    for call in 0..5 {
        let world = mixed();
        world.shard().fail_at(call, Fault::AnswerLost);
        (call + 1..call + 4).for_each(|next| world.shard().fail_at(next, Fault::Refused));
        let swept = world.sweep();
        assert!(!swept.errors.is_empty(), "call {call}");
        world.shard().heal();
        world.clock.advance_ms(SWEEP_LANE_MS);
        world.sweep();
        assert_all_is_settled(&world, &format!("call {call}"));
    }
}

#[test]
fn a_send_whose_answer_is_lost_is_sent_again() {
    let world = World::new(1);
    strand(&world, AUDIT, 3);
    world.queues.fail_at(0, Fault::AnswerLost);
    assert_eq!(world.sweep().failed, 3);
    world.clock.advance_ms(2 * MINUTE_MS);
    assert_eq!(world.sweep().enqueued, 3);
    assert_eq!(world.waiting(AUDIT), 6, "consumers drop the second of each");
}

#[test]
fn a_queue_that_hangs_holds_up_no_other_topic() {
    let world = World::new(1);
    strand(&world, BILLING, 10);
    strand(&world, AUDIT, 3 * SWEEP_PAGE_MAX);
    world.trouble(BILLING, Some(Trouble::Hangs));
    assert!(poll(pin!(world.sweep_with("hangs")), 1_000).is_none());
    assert_eq!(world.waiting(AUDIT), 3 * SWEEP_PAGE_MAX);
    let sent =
        "SELECT count(*) AS n FROM event_dispatches WHERE topic = 'audit.events' AND status = 'enqueued'";
    assert_eq!(world.rows(sent)[0]["n"], 3 * SWEEP_PAGE_MAX);
    // The hanging run still has the lane of its topic; another waits until that ends.
    world.trouble(BILLING, None);
    assert_eq!(world.sweep(), Swept::default());
    world.clock.advance_ms(SWEEP_LANE_MS);
    assert_eq!(world.sweep().enqueued, 10);
}

#[test]
fn a_run_whose_lane_was_taken_notices_and_stops() {
    let world = World::new(1);
    strand(&world, AUDIT, 3 * SWEEP_PAGE_MAX);
    let mut late = pin!(world.sweep_with("late"));
    while world.waiting(AUDIT) == 0 {
        assert!(poll(late.as_mut(), 1).is_none());
    }
    world.clock.advance_ms(SWEEP_LANE_MS);
    assert_eq!(world.sweep().enqueued, 3 * SWEEP_PAGE_MAX);
    let settled = world.rows("SELECT * FROM event_dispatches");
    let swept = poll(late, 1_000).unwrap();
    assert_eq!(swept, Swept { enqueued: SWEEP_PAGE_MAX, ..Swept::default() });
    assert_eq!(world.rows("SELECT * FROM event_dispatches"), settled, "it changed nothing any more");
    assert_eq!(world.waiting(AUDIT), 4 * SWEEP_PAGE_MAX);
}

#[test]
fn a_lane_in_use_is_left_to_its_run_and_given_back_at_its_end() {
    let world = World::new(1);
    strand(&world, AUDIT, 1);
    let mut first = pin!(world.sweep_with("first"));
    while world.waiting(AUDIT) == 0 {
        assert!(poll(first.as_mut(), 1).is_none());
    }
    assert_eq!(world.sweep(), Swept::default());
    assert_eq!(poll(first, 1_000).unwrap().enqueued, 1);
    assert!(world.rows("SELECT * FROM lanes").is_empty());
}

/// Lets something happen between a run's send of one dispatch and its settlement.
fn meanwhile(trouble: Option<Trouble>, sql: &'static str) -> World {
    let world = World::new(1);
    strand(&world, BILLING, 1);
    run(world.shard().port(), "UPDATE event_dispatches SET attempts = 4", Vec::new());
    world.trouble(BILLING, trouble);
    {
        let mut sweep = pin!(world.sweep_with("slow"));
        let before = world.queues.calls();
        while world.queues.calls() == before {
            assert!(poll(sweep.as_mut(), 1).is_none());
        }
        run(world.shard().port(), sql, Vec::new());
        assert_eq!(poll(sweep, 1_000).unwrap().errors, []);
    }
    world
}

#[test]
fn who_touches_a_dispatch_during_the_send_wins() {
    let down = || Some(Trouble::Fails(SendError::Refused("queue is down".to_owned())));
    let touches = [
        "UPDATE event_dispatches SET status = 'delivered', next_retry_at = NULL",
        "UPDATE event_dispatches SET status = 'pending', replays = 1, attempts = 0",
        "UPDATE event_dispatches SET next_retry_at = '2027-01-01 00:00:00.000', claimed_by = 'core'",
        "UPDATE event_dispatches SET status = 'dead_lettered'",
    ];
    for touch in touches {
        for trouble in [None, down()] {
            let untouched = World::new(1);
            strand(&untouched, BILLING, 1);
            run(untouched.shard().port(), "UPDATE event_dispatches SET attempts = 4", Vec::new());
            run(untouched.shard().port(), touch, Vec::new());
            let world = meanwhile(trouble, touch);
            let state = "SELECT * FROM event_dispatches";
            assert_eq!(world.rows(state), untouched.rows(state), "{touch}");
            assert_eq!(incidents(&world), [""; 0]);
        }
    }
    // A consumer that has begun to work is not cut short by giving up; a send that went well is recorded all the same.
    let lease = "UPDATE event_dispatches SET lease = '2027-01-01 00:00:00.000', lease_holder = 'consumer'";
    for (trouble, status) in [(down(), "pending"), (None, "enqueued")] {
        let world = meanwhile(trouble, lease);
        assert_eq!(world.rows("SELECT status, lease_holder FROM event_dispatches")[0]["status"], status);
        assert_eq!(incidents(&world), [""; 0]);
    }
}

#[test]
fn a_settlement_that_comes_too_late_does_not_touch_the_next_claim() {
    let world = World::new(1);
    let accepted = block_on(world.accept(vec![event("e1", PAID)]));
    assert_eq!(recorded(&accepted.receipts[0]).status, ReceiptStatus::Enqueued);
    world.clock.advance_ms(SEND_LEASE_MS);
    world.set_down(BILLING, true);
    assert_eq!(world.sweep().failed, 1, "the sweeper cannot know that the first send went well");
    let late = swarm_domain::settle::settle(&world.ledger, accepted.settlements, world.clock.now(), 1);
    block_on(late).unwrap();
    assert_eq!(world.dispatches(), ["e1 billing.events failed"]);
}

#[test]
fn a_run_begins_nothing_after_its_deadline() {
    let world = mixed();
    let calls = world.shard().calls();
    let budget = Budget::new(world.clock.now(), CALLS);
    assert_eq!(block_on(world.sweep_within("late", budget)), Swept::default());
    assert_eq!(world.shard().calls(), calls);
    // One that ends half way settles what it has sent and gives its lanes back.
    let world = World::new(1);
    strand(&world, AUDIT, 3 * SWEEP_PAGE_MAX);
    let deadline = world.clock.now().plus_ms(1);
    let mut sweep = pin!(world.sweep_within("short", Budget::new(deadline, CALLS)));
    while world.waiting(AUDIT) == 0 {
        assert!(poll(sweep.as_mut(), 1).is_none());
    }
    world.clock.advance_ms(1);
    assert_eq!(poll(sweep, 1_000).unwrap().enqueued, SWEEP_PAGE_MAX);
    assert_eq!(world.waiting(AUDIT), SWEEP_PAGE_MAX);
    assert!(world.rows("SELECT * FROM lanes").is_empty());
    assert_eq!(world.sweep().enqueued, 2 * SWEEP_PAGE_MAX);
    assert_eq!(world.waiting(AUDIT), 3 * SWEEP_PAGE_MAX, "nothing was sent twice");
}

#[test]
fn a_run_never_makes_more_calls_than_it_may_and_settles_all_that_it_sends() {
    for budget in 0..30 {
        for fault in [None, Some(Fault::AnswerLost)] {
            let world = mixed();
            let before = world.shard().calls() + world.queues.calls();
            if let Some(fault) = fault {
                world.shard().fail_at(0, fault);
            }
            let deadline = world.clock.now().plus_ms(MINUTE_MS);
            let swept = block_on(world.sweep_within("short", Budget::new(deadline, budget)));
            let calls = world.shard().calls() + world.queues.calls() - before;
            assert!(calls <= budget, "{calls} calls of {budget}");
            let what = format!("{budget} calls, {fault:?}");
            assert_eq!(world.waiting(AUDIT), swept.enqueued, "{what}");
            let settled = world.rows("SELECT count(*) AS n FROM event_dispatches WHERE status = 'enqueued'");
            assert_eq!(settled[0]["n"], swept.enqueued, "{what}");
            assert!(
                world.rows("SELECT 1 AS n FROM event_dispatches WHERE status = 'failed'").is_empty(),
                "{what}"
            );
            assert!(world.rows("SELECT * FROM lanes").is_empty() || fault.is_some(), "{what}");
            world.clock.advance_ms(SWEEP_LANE_MS);
            world.sweep();
            assert_all_is_settled(&world, &what);
        }
    }
}

#[test]
fn a_budget_for_one_topic_serves_each_in_its_turn() {
    let world = World::new(1);
    strand(&world, AUDIT, 10 * SWEEP_PAGE_MAX);
    strand(&world, BILLING, 10 * SWEEP_PAGE_MAX);
    for run in 0..4 {
        // To find the topics, and for one of them: two kept to close, a page, its batch.
        let budget = Budget::new(world.clock.now().plus_ms(MINUTE_MS), 5);
        let swept = block_on(world.sweep_within(&format!("run-{run}"), budget));
        assert_eq!(swept, Swept { enqueued: SWEEP_PAGE_MAX, ..Swept::default() });
    }
    assert_eq!((world.waiting(AUDIT), world.waiting(BILLING)), (2 * SWEEP_PAGE_MAX, 2 * SWEEP_PAGE_MAX));
}

#[test]
fn halving_a_rejected_batch_keeps_to_the_budget() {
    for budget in 4..24 {
        let world = World::new(1);
        strand(&world, BILLING, SWEEP_PAGE_MAX);
        let error = SendError::Rejected("Message metadata is invalid (10203)".to_owned());
        world.trouble(BILLING, Some(Trouble::Dislikes("e00042", error)));
        let before = world.shard().calls() + world.queues.calls();
        let deadline = world.clock.now().plus_ms(MINUTE_MS);
        let swept = block_on(world.sweep_within("short", Budget::new(deadline, budget)));
        assert!(world.shard().calls() + world.queues.calls() - before <= budget);
        let rest = world.sweep();
        assert_eq!(swept.enqueued + rest.enqueued, SWEEP_PAGE_MAX - 1, "{budget}");
        assert_eq!(swept.abandoned + rest.abandoned, 1, "{budget}");
        assert_eq!(world.waiting(BILLING), SWEEP_PAGE_MAX - 1, "{budget}");
    }
}
