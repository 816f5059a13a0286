//! Consumers on SQLite: one owner per dispatch, effects exactly once, and nothing lost when a lease is.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{World, event, generation, run};
use futures_util::future::join;
use swarm_domain::incident::{IncidentEvent, IncidentState, Kind, Report, incident_id, report};
use swarm_domain::lease::{Generation, Lease, Outcome, settle, take, take_unfinished};
use swarm_domain::limits::{
    ARCHIVE_DEADLINE_MS, ERROR_BYTES_MAX, HANDLE_LEASE_MS, HANDLE_STARTS_MAX, IN_TRANSIT_DEADLINE_MS_DEFAULT,
};
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

async fn lease(world: &World, key: &Generation, holder: &str) -> Lease {
    take(world.shard(), std::slice::from_ref(key), holder, world.clock.now()).await.unwrap()[key]
}

async fn lease_alone(world: &World, message: &Generation, holder: &str) -> Lease {
    take_unfinished(world.shard(), message, holder, world.clock.now()).await.unwrap()
}

async fn finish(world: &World, outcomes: Vec<(Generation, Outcome)>, holder: &str) -> Result<(), SqlError> {
    settle(world.shard(), outcomes, holder, world.clock.now()).await
}

#[test]
fn of_two_consumers_at_once_one_handles() {
    let world = world(&["e1"]);
    let e1 = generation("e1", TOPIC, 0);
    let leases = block_on(join(lease(&world, &e1, "one"), lease(&world, &e1, "two")));
    assert_eq!(leases, (Lease::Ours, Lease::Held));
}

#[test]
fn a_batch_of_any_size_costs_two_round_trips() {
    let ids: Vec<String> = (0..100).map(|n| format!("e{n}")).collect();
    let world = world(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    let keys: Vec<_> = ids.iter().map(|id| generation(id, TOPIC, 0)).collect();
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
    let (e1, e2, alien) =
        (generation("e1", TOPIC, 0), generation("e2", TOPIC, 0), generation("alien", TOPIC, 0));
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
    let e1 = generation("e1", TOPIC, 0);
    assert_eq!(block_on(lease(&world, &e1, "one")), Lease::Ours);
    block_on(finish(&world, vec![(e1, Outcome::Delivered(Vec::new()))], "one")).unwrap();
    let mark = swarm_domain::settle::settle(&world.ledger, accepted.settlements, world.clock.now(), 1);
    block_on(mark).unwrap();
    assert_eq!(world.dispatches(), ["e1 billing.events delivered"]);
}

#[test]
fn a_released_lease_can_be_taken_at_once_and_the_error_is_kept() {
    let world = world(&["e1"]);
    let e1 = generation("e1", TOPIC, 0);
    assert_eq!(block_on(lease(&world, &e1, "one")), Lease::Ours);
    let error = format!("line one\nquote \" nul \0 é{}", "x".repeat(2 * ERROR_BYTES_MAX));
    block_on(finish(
        &world,
        vec![(e1.clone(), Outcome::Released { error: error.clone(), handled: true })],
        "one",
    ))
    .unwrap();
    let row = &world.rows("SELECT status, last_error FROM event_dispatches")[0];
    assert_eq!(row["status"], "enqueued");
    assert_eq!(row["last_error"], error[..ERROR_BYTES_MAX]);
    assert_eq!(block_on(lease(&world, &e1, "two")), Lease::Ours);
}

#[test]
fn the_lease_of_a_dead_consumer_ends() {
    let world = world(&["e1"]);
    let e1 = generation("e1", TOPIC, 0);
    assert_eq!(block_on(lease(&world, &e1, "one")), Lease::Ours);
    world.clock.advance_ms(HANDLE_LEASE_MS - 1);
    assert_eq!(block_on(lease(&world, &e1, "two")), Lease::Held);
    world.clock.advance_ms(1);
    assert_eq!(block_on(lease(&world, &e1, "two")), Lease::Unfinished);
    assert_eq!(block_on(lease_alone(&world, &e1, "two")), Lease::Ours);
}

#[test]
fn a_lost_lease_undoes_the_effects_of_its_whole_batch() {
    let world = world(&["e1", "e2"]);
    let keys = [generation("e1", TOPIC, 0), generation("e2", TOPIC, 0)];
    block_on(take(world.shard(), &keys, "one", world.clock.now())).unwrap();
    world.clock.advance_ms(HANDLE_LEASE_MS);
    assert_eq!(block_on(lease_alone(&world, &keys[0], "two")), Lease::Ours);
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
    let e1 = generation("e1", TOPIC, 0);
    block_on(lease(&world, &e1, "one"));
    let wrong = Outcome::Delivered(vec![Statement::new("INSERT INTO effects VALUES (NULL)", Vec::new())]);
    let error = block_on(finish(&world, vec![(e1, wrong)], "one")).unwrap_err();
    assert!(matches!(error, SqlError::Constraint(_)), "{error}");
    assert_eq!(world.dispatches(), ["e1 billing.events enqueued"]);
}

#[test]
fn a_lost_answer_never_repeats_an_effect() {
    let world = world(&["e1"]);
    let e1 = generation("e1", TOPIC, 0);
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
    let e1 = generation("e1", TOPIC, 0);
    let dead = || vec![(e1.clone(), Outcome::DeadLettered("bad card".to_owned()))];
    block_on(finish(&world, dead(), "nobody")).unwrap();
    assert_eq!(world.dispatches(), ["e1 billing.events enqueued"]);
    block_on(lease(&world, &e1, "one"));
    world.shard().fail_at(0, Fault::AnswerLost);
    block_on(finish(&world, dead(), "one")).unwrap();
    let row = &world.rows("SELECT status, last_error, next_retry_at FROM event_dispatches")[0];
    assert_eq!((&row["status"], &row["last_error"]), (&"dead_lettered".into(), &"bad card".into()));
    // Until its incident is there, somebody looks after it.
    let deadline = world.clock.now().plus_ms(ARCHIVE_DEADLINE_MS);
    assert_eq!(row["next_retry_at"], deadline.to_string());
    assert_eq!(block_on(lease(&world, &e1, "two")), Lease::AtRest);
}

#[test]
fn the_sweeper_leaves_alone_what_a_consumer_is_handling() {
    let world = world(&["e1"]);
    let day = swarm_domain::limits::IN_TRANSIT_DEADLINE_MS_DEFAULT;
    world.clock.advance_ms(day - 1);
    assert_eq!(block_on(lease(&world, &generation("e1", TOPIC, 0), "one")), Lease::Ours);
    world.clock.advance_ms(1);
    assert_eq!(world.sweep().enqueued, 0);
    world.clock.advance_ms(HANDLE_LEASE_MS);
    assert_eq!(world.sweep().enqueued, 1);
}

fn column(world: &World, name: &str) -> serde_json::Value {
    world.rows("SELECT * FROM event_dispatches")[0][name].clone()
}

#[test]
fn a_message_of_an_earlier_generation_is_void() {
    let world = world(&["e1"]);
    world.repeat("e1", TOPIC);
    let [old, new] = [0, 1].map(|replay| generation("e1", TOPIC, replay));
    assert_eq!(block_on(lease(&world, &old, "one")), Lease::AtRest);
    assert_eq!((column(&world, "starts"), column(&world, "lease")), (0.into(), ().into()));
    let leases =
        block_on(take(world.shard(), &[old.clone(), new.clone()], "two", world.clock.now())).unwrap();
    assert_eq!((leases[&old], leases[&new]), (Lease::AtRest, Lease::Ours));
    // One that the ledger has not heard of, as after a restore, is left to the sweeper.
    assert_eq!(block_on(lease(&world, &generation("e1", TOPIC, 2), "three")), Lease::Held);
}

#[test]
fn a_repetition_takes_the_lease_away_and_undoes_what_was_done_under_it() {
    let world = world(&["e1"]);
    let e1 = generation("e1", TOPIC, 0);
    assert_eq!(block_on(lease(&world, &e1, "one")), Lease::Ours);
    world.repeat("e1", TOPIC);
    for outcome in [
        Outcome::Released { error: "late".to_owned(), handled: true },
        Outcome::DeadLettered("late".to_owned()),
    ] {
        block_on(finish(&world, vec![(e1.clone(), outcome)], "one")).unwrap();
    }
    assert!(block_on(finish(&world, vec![(e1.clone(), effect("e1"))], "one")).is_err());
    assert_eq!((effects(&world), block_on(lease(&world, &e1, "one"))), (0, Lease::AtRest));
    assert_eq!(world.dispatches(), ["e1 billing.events pending"]);
    assert!(column(&world, "last_error").is_null());
}

#[test]
fn a_handler_that_never_finishes_is_started_alone_and_in_the_end_not_at_all() {
    let world = world(&["e1"]);
    let e1 = generation("e1", TOPIC, 0);
    assert_eq!(block_on(lease(&world, &e1, "run 1")), Lease::Ours);
    let alone = |holder| block_on(lease_alone(&world, &e1, holder));
    for (start, holder) in (2..=HANDLE_STARTS_MAX).zip(["run 2", "run 3"]) {
        assert_eq!(alone(holder), Lease::Held);
        world.clock.advance_ms(HANDLE_LEASE_MS);
        assert_eq!(block_on(lease(&world, &e1, "a batch")), Lease::Unfinished);
        world.shard().fail_at(0, Fault::AnswerLost);
        assert_eq!(alone(holder), Lease::Ours);
        assert_eq!(column(&world, "starts"), start, "a lost answer is no second start");
    }
    let dead = vec![(e1.clone(), Outcome::DeadLettered("never finished".to_owned()))];
    block_on(finish(&world, dead.clone(), "a batch")).unwrap();
    assert_eq!(column(&world, "status"), "enqueued", "the last run may still come to an end");
    world.clock.advance_ms(HANDLE_LEASE_MS);
    assert_eq!((block_on(lease(&world, &e1, "a batch")), alone("run 4")), (Lease::Stalled, Lease::Stalled));
    block_on(finish(&world, dead, "a batch")).unwrap();
    assert_eq!((column(&world, "status"), column(&world, "starts")), ("dead_lettered".into(), 0.into()));
    assert_eq!(column(&world, "last_error"), "never finished");
}

#[test]
fn a_run_that_comes_to_an_end_is_no_stall() {
    for outcome in [
        effect("e1"),
        Outcome::Released { error: "busy".to_owned(), handled: true },
        Outcome::DeadLettered("no".to_owned()),
    ] {
        let world = world(&["e1"]);
        let e1 = generation("e1", TOPIC, 0);
        block_on(lease(&world, &e1, "one"));
        world.clock.advance_ms(HANDLE_LEASE_MS);
        assert_eq!(block_on(lease(&world, &e1, "two")), Lease::Unfinished);
        block_on(finish(&world, vec![(e1, outcome)], "one")).unwrap();
        assert_eq!((column(&world, "starts"), column(&world, "lease")), (0.into(), ().into()));
    }
}

#[test]
fn what_is_let_go_is_due_when_the_lease_ends() {
    let world = world(&["e1"]);
    let e1 = generation("e1", TOPIC, 0);
    let let_go = || block_on(finish(&world, vec![(e1.clone(), Outcome::LetGo)], "two")).unwrap();
    let in_transit = column(&world, "next_retry_at");
    let_go();
    assert_eq!(column(&world, "next_retry_at"), in_transit, "nobody holds it");
    block_on(lease(&world, &e1, "one"));
    let_go();
    assert_eq!(column(&world, "next_retry_at"), column(&world, "lease"));
    world.clock.advance_ms(HANDLE_LEASE_MS);
    assert_eq!(world.sweep().enqueued, 1);
    let message = world.take(TOPIC).pop().unwrap();
    assert_eq!(block_on(lease(&world, &message.generation(), "three")), Lease::Unfinished);
}

#[test]
fn what_is_due_earlier_than_the_lease_ends_stays_due() {
    let world = world(&["e1"]);
    let e1 = generation("e1", TOPIC, 0);
    world.clock.advance_ms(IN_TRANSIT_DEADLINE_MS_DEFAULT - 1);
    let before = column(&world, "next_retry_at");
    block_on(lease(&world, &e1, "one"));
    block_on(finish(&world, vec![(e1, Outcome::LetGo)], "two")).unwrap();
    assert_eq!(column(&world, "next_retry_at"), before);
}

/// Has the dispatch fail for good, brings its incident into a state, and has it repeated.
fn failed_and_repeated(world: &World, state: IncidentState) -> Generation {
    let e1 = generation("e1", TOPIC, 0);
    block_on(lease(world, &e1, "first"));
    block_on(finish(world, vec![(e1.clone(), Outcome::DeadLettered("no".to_owned()))], "first")).unwrap();
    let failure = Report {
        incident_id: incident_id(&e1.key),
        key: e1.key,
        kind: Kind::DeadLetter,
        source_queue: "billing-events".to_owned(),
        generation: 0,
        error: None,
        stack: None,
    };
    let statement = report(&[failure], world.clock.now()).unwrap();
    run(world.shard().port(), statement.sql, statement.values);
    let sql = "UPDATE dlq_incidents SET status = ?1, resolved_by = 'ada'";
    run(world.shard().port(), sql, vec![state.name().into()]);
    world.repeat("e1", TOPIC);
    generation("e1", TOPIC, 1)
}

#[test]
fn a_delivered_repetition_closes_its_incident_in_the_same_batch() {
    for state in IncidentState::ALL {
        let world = world(&["e1"]);
        let again = failed_and_repeated(&world, state);
        block_on(lease(&world, &again, "second"));
        let calls = world.shard().calls();
        block_on(finish(&world, vec![(again, effect("e1"))], "second")).unwrap();
        assert_eq!(world.shard().calls(), calls + 1);
        let row = &world.rows("SELECT * FROM dlq_incidents")[0];
        let expected = state.after(IncidentEvent::Deliver).unwrap_or(state);
        assert_eq!((&row["status"], &row["resolved_by"]), (&expected.name().into(), &"ada".into()));
        let resolved_now = state.after(IncidentEvent::Deliver).is_ok();
        assert_eq!((row["resolved_at"].is_string(), row["alert_at"].is_null()), (resolved_now, resolved_now));
    }
}

#[test]
fn a_repetition_that_lost_its_lease_closes_nothing() {
    let world = world(&["e1"]);
    let again = failed_and_repeated(&world, IncidentState::Retrying);
    block_on(lease(&world, &again, "second"));
    assert!(block_on(finish(&world, vec![(again, effect("e1"))], "somebody else")).is_err());
    assert_eq!(world.rows("SELECT status FROM dlq_incidents")[0]["status"], "retrying");
    assert_eq!(effects(&world), 0);
}
