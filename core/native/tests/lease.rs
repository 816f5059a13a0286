//! Consumers on SQLite: one owner per dispatch, effects exactly once, and nothing lost when a lease is.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{World, event, key, run};
use futures_util::future::join;
use swarm_domain::lease::{Lease, Outcome, settle, take};
use swarm_domain::ledger::DispatchKey;
use swarm_domain::limits::{ERROR_BYTES_MAX, HANDLE_LEASE_MS};
use swarm_domain::ports::{Clock, SqlError, Statement};
use swarm_native::{Fault, block_on};

const PAID: &str = "billing.invoice.paid";
const TOPIC: &str = "billing.events";

/// A world with enqueued events and a table for what handlers do.
fn world(ids: &[&str]) -> World {
    let world = World::new(1);
    for id in ids {
        world.publish(event(id, PAID));
    }
    run(world.shard().port(), "CREATE TABLE effects (id TEXT NOT NULL) STRICT", Vec::new());
    world
}

/// An effect that would show if it happened twice.
fn effect(id: &str) -> Outcome {
    Outcome::Delivered(vec![Statement::new("INSERT INTO effects VALUES (?1)", vec![id.into()])])
}

fn effects(world: &World) -> usize {
    world.rows("SELECT id FROM effects").len()
}

async fn lease(world: &World, key: &DispatchKey, holder: &str) -> Lease {
    take(world.shard(), std::slice::from_ref(key), holder, world.clock.now()).await.unwrap()[key]
}

async fn finish(world: &World, outcomes: Vec<(DispatchKey, Outcome)>, holder: &str) -> Result<(), SqlError> {
    settle(world.shard(), outcomes, holder, world.clock.now()).await
}

#[test]
fn of_two_consumers_at_once_one_handles() {
    let world = world(&["e1"]);
    let e1 = key("e1", TOPIC);
    let leases = block_on(join(lease(&world, &e1, "one"), lease(&world, &e1, "two")));
    assert_eq!(leases, (Lease::Ours, Lease::Held));
}

#[test]
fn a_batch_of_any_size_costs_two_round_trips() {
    let ids: Vec<String> = (0..100).map(|n| format!("e{n}")).collect();
    let world = world(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    let keys: Vec<_> = ids.iter().map(|id| key(id, TOPIC)).collect();
    let calls = world.shard().calls();
    let leases = block_on(take(world.shard(), &keys, "one", world.clock.now())).unwrap();
    assert!(leases.len() == 100 && leases.values().all(|lease| *lease == Lease::Ours));
    let outcomes = ids.iter().zip(keys).map(|(id, key)| (key, effect(id))).collect();
    block_on(finish(&world, outcomes, "one")).unwrap();
    assert_eq!(world.shard().calls(), calls + 2);
    assert_eq!(effects(&world), 100);
    assert!(world.dispatches().iter().all(|line| line.ends_with("delivered")));
}

#[test]
fn what_is_delivered_is_at_rest_and_what_the_ledger_does_not_know_is_unknown() {
    let world = world(&["e1", "e2"]);
    let (e1, e2, alien) = (key("e1", TOPIC), key("e2", TOPIC), key("alien", TOPIC));
    assert_eq!(block_on(lease(&world, &e1, "one")), Lease::Ours);
    block_on(finish(&world, vec![(e1.clone(), effect("e1"))], "one")).unwrap();
    let keys = [e1.clone(), e2.clone(), alien.clone()];
    let leases = block_on(take(world.shard(), &keys, "two", world.clock.now())).unwrap();
    assert_eq!((leases[&e1], leases[&e2], leases[&alien]), (Lease::AtRest, Lease::Ours, Lease::Unknown));
    let row = &world.rows("SELECT * FROM event_dispatches WHERE event_id = 'e1'")[0];
    for column in ["next_retry_at", "claimed_by", "lease", "lease_holder", "last_error"] {
        assert!(row[column].is_null(), "{column}");
    }
}

#[test]
fn a_consumer_may_come_before_the_mark_that_it_was_enqueued() {
    let world = World::new(1);
    let accepted = block_on(world.accept(vec![event("e1", PAID)]));
    let e1 = key("e1", TOPIC);
    assert_eq!(block_on(lease(&world, &e1, "one")), Lease::Ours);
    block_on(finish(&world, vec![(e1, Outcome::Delivered(Vec::new()))], "one")).unwrap();
    let mark = swarm_domain::settle::settle(&world.ledger, accepted.settlements, world.clock.now(), 1);
    block_on(mark).unwrap();
    assert_eq!(world.dispatches(), ["e1 billing.events delivered"]);
}

#[test]
fn a_released_lease_can_be_taken_at_once_and_the_error_is_kept() {
    let world = world(&["e1"]);
    let e1 = key("e1", TOPIC);
    assert_eq!(block_on(lease(&world, &e1, "one")), Lease::Ours);
    let error = format!("line one\nquote \" nul \0 é{}", "x".repeat(2 * ERROR_BYTES_MAX));
    block_on(finish(&world, vec![(e1.clone(), Outcome::Released(error.clone()))], "one")).unwrap();
    let row = &world.rows("SELECT status, last_error FROM event_dispatches")[0];
    assert_eq!(row["status"], "enqueued");
    assert_eq!(row["last_error"], error[..ERROR_BYTES_MAX]);
    assert_eq!(block_on(lease(&world, &e1, "two")), Lease::Ours);
}

#[test]
fn the_lease_of_a_dead_consumer_ends() {
    let world = world(&["e1"]);
    let e1 = key("e1", TOPIC);
    assert_eq!(block_on(lease(&world, &e1, "one")), Lease::Ours);
    world.clock.advance_ms(HANDLE_LEASE_MS - 1);
    assert_eq!(block_on(lease(&world, &e1, "two")), Lease::Held);
    world.clock.advance_ms(1);
    assert_eq!(block_on(lease(&world, &e1, "two")), Lease::Ours);
}

#[test]
fn a_lost_lease_undoes_the_effects_of_its_whole_batch() {
    let world = world(&["e1", "e2"]);
    let keys = [key("e1", TOPIC), key("e2", TOPIC)];
    block_on(take(world.shard(), &keys, "one", world.clock.now())).unwrap();
    world.clock.advance_ms(HANDLE_LEASE_MS);
    assert_eq!(block_on(lease(&world, &keys[0], "two")), Lease::Ours);
    let outcomes = vec![(keys[0].clone(), effect("e1")), (keys[1].clone(), effect("e2"))];
    let error = block_on(finish(&world, outcomes, "one")).unwrap_err();
    assert!(matches!(error, SqlError::Constraint(_)), "{error}");
    assert_eq!(effects(&world), 0);
    assert_eq!(world.dispatches(), ["e1 billing.events enqueued", "e2 billing.events enqueued"]);
    // Alone, the message whose lease still holds goes through, and so does the other one's new owner.
    block_on(finish(&world, vec![(keys[1].clone(), effect("e2"))], "one")).unwrap();
    block_on(finish(&world, vec![(keys[0].clone(), effect("e1"))], "two")).unwrap();
    assert_eq!(effects(&world), 2);
}

#[test]
fn an_effect_that_is_refused_leaves_its_message_undelivered() {
    let world = world(&["e1"]);
    let e1 = key("e1", TOPIC);
    block_on(lease(&world, &e1, "one"));
    let wrong = Outcome::Delivered(vec![Statement::new("INSERT INTO effects VALUES (NULL)", Vec::new())]);
    let error = block_on(finish(&world, vec![(e1, wrong)], "one")).unwrap_err();
    assert!(matches!(error, SqlError::Constraint(_)), "{error}");
    assert_eq!(world.dispatches(), ["e1 billing.events enqueued"]);
}

#[test]
fn a_lost_answer_never_repeats_an_effect() {
    let world = world(&["e1"]);
    let e1 = key("e1", TOPIC);
    world.shard().fail_at(0, Fault::AnswerLost);
    assert_eq!(block_on(lease(&world, &e1, "one")), Lease::Ours, "taking twice is taking once");
    world.shard().fail_at(0, Fault::AnswerLost);
    // The batch committed and its repetition was undone, so the caller hears of a conflict; asking again clears it up.
    let error = block_on(finish(&world, vec![(e1.clone(), effect("e1"))], "one")).unwrap_err();
    assert!(matches!(error, SqlError::Constraint(_)), "{error}");
    assert_eq!(effects(&world), 1);
    assert_eq!(block_on(lease(&world, &e1, "one")), Lease::AtRest);
}

#[test]
fn a_dead_letter_is_at_rest_and_its_mark_needs_the_lease() {
    let world = world(&["e1"]);
    let e1 = key("e1", TOPIC);
    let dead = || vec![(e1.clone(), Outcome::DeadLettered("bad card".to_owned()))];
    block_on(finish(&world, dead(), "nobody")).unwrap();
    assert_eq!(world.dispatches(), ["e1 billing.events enqueued"]);
    block_on(lease(&world, &e1, "one"));
    world.shard().fail_at(0, Fault::AnswerLost);
    block_on(finish(&world, dead(), "one")).unwrap();
    let row = &world.rows("SELECT status, last_error, next_retry_at FROM event_dispatches")[0];
    assert_eq!((&row["status"], &row["last_error"]), (&"dead_lettered".into(), &"bad card".into()));
    assert!(row["next_retry_at"].is_null());
    assert_eq!(block_on(lease(&world, &e1, "two")), Lease::AtRest);
}

#[test]
fn the_sweeper_leaves_alone_what_a_consumer_is_handling() {
    let world = world(&["e1"]);
    let day = swarm_domain::limits::IN_TRANSIT_DEADLINE_MS_DEFAULT;
    world.clock.advance_ms(day - 1);
    assert_eq!(block_on(lease(&world, &key("e1", TOPIC), "one")), Lease::Ours);
    world.clock.advance_ms(1);
    assert_eq!(world.sweep().enqueued, 0);
    world.clock.advance_ms(HANDLE_LEASE_MS);
    assert_eq!(world.sweep().enqueued, 1);
}
