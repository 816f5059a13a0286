//! Operators looking for events: lists that lose and repeat nothing whatever is recorded meanwhile, following the ledger, and
//! the timeline of every attempt.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::collections::BTreeSet;

use common::operators::{deliver, fail_everything, incident_of, op, replayer};
use common::{MINUTE_MS, START_MS, World, event, event_of, generation, run};
use proptest::prelude::*;
use swarm_domain::events::{EventBrief, EventFilter, EventFilterInput, Events};
use swarm_domain::incident::OperationError;
use swarm_domain::lease::{Outcome, settle, take};
use swarm_domain::limits::{EVENTS_LOOKED_AT_MAX, HISTORY_ENTRIES_MAX, HISTORY_ERROR_CHARS_MAX};
use swarm_domain::ports::{Clock, Value};
use swarm_domain::time::Timestamp;
use swarm_native::block_on;

fn events(world: &World) -> Events<'_, common::Shard> {
    Events { ledger: &world.ledger }
}

fn filter(json: &str) -> EventFilter {
    EventFilter::parse(serde_json::from_str::<EventFilterInput>(json).unwrap()).unwrap()
}

/// Everything that a filter lists, and how many pages that took.
fn list_all(world: &World, json: &str, limit: usize) -> (Vec<EventBrief>, usize) {
    let (mut listed, mut cursor, mut pages) = (Vec::new(), None::<String>, 0);
    loop {
        let page = block_on(events(world).list(&filter(json), limit, cursor.as_deref())).unwrap();
        assert!(page.events.len() <= limit);
        listed.extend(page.events);
        pages += 1;
        assert!(pages < 10_000, "the list does not end");
        match page.next_cursor {
            Some(next) => {
                assert_ne!(Some(&next), cursor.as_ref(), "a page that leads nowhere");
                cursor = Some(next);
            }
            None => return (listed, pages),
        }
    }
}

fn ids(events: &[EventBrief]) -> Vec<&str> {
    events.iter().map(|event| event.event_id.as_str()).collect()
}

/// What an event's dispatch to `billing.events` has gone through: `send_failed`, …
fn told(world: &World, tenant: &str, id: &str) -> Vec<String> {
    let details = block_on(events(world).view(tenant, id)).unwrap();
    let entries = details.dispatches[0].timeline.iter();
    entries.map(|entry| format!("{} {}", entry.replay, entry.what)).collect()
}

#[test]
fn a_list_is_filtered_by_each_field_and_by_all() {
    let world = World::new(3);
    world.publish(event_of("acme", "e1", "billing.invoice.paid", "{}"));
    world.publish(event_of("shop", "e1", "shop.order.paid", "{}"));
    world.clock.advance_ms(10 * MINUTE_MS);
    world.publish(event_of("acme", "e2", "crm.contact.made", "{}"));
    deliver(&world, "billing.events");
    for (json, expected) in [
        ("{}", "e2@acme e1@acme e1@shop"),
        (r#"{"tenant":"acme"}"#, "e2@acme e1@acme"),
        (r#"{"id":"e1"}"#, "e1@acme e1@shop"),
        (r#"{"id":"e1","tenant":"shop"}"#, "e1@shop"),
        (r#"{"id":"e1","type":"shop.order.paid"}"#, "e1@shop"),
        (r#"{"id":"e9"}"#, ""),
        (r#"{"type":"billing.invoice.paid"}"#, "e1@acme"),
        (r#"{"topic":"audit.events"}"#, "e1@shop"),
        (r#"{"status":["completed"]}"#, "e1@acme"),
        (r#"{"status":["processing","undelivered"]}"#, "e2@acme e1@shop"),
        (r#"{"since":"2026-01-01T00:10:00Z"}"#, "e2@acme"),
        (r#"{"until":"2026-01-01T00:10:00Z"}"#, "e1@acme e1@shop"),
        (r#"{"tenant":"acme","since":"2026-01-01T00:10:00Z"}"#, "e2@acme"),
        (r#"{"tenant":"acme","until":"2026-01-01T00:10:00Z"}"#, "e1@acme"),
        (r#"{"tenant":"nobody"}"#, ""),
    ] {
        let (mut listed, _) = list_all(&world, json, 50);
        listed.sort_by_key(|event| (std::cmp::Reverse(event.created_at), event.tenant_id.clone()));
        let names: Vec<_> =
            listed.iter().map(|event| format!("{}@{}", event.event_id, event.tenant_id)).collect();
        assert_eq!(names.join(" "), expected, "{json}");
    }
}

#[test]
fn a_page_looks_at_so_many_events_and_no_more() {
    let world = World::new(1);
    let rare = |id: &str| world.publish(event_of("acme", id, "rare.thing.found", "{}"));
    rare("first");
    common::strand(&world, "billing.events", EVENTS_LOOKED_AT_MAX + 10);
    rare("last");
    for json in [r#"{"type":"rare.thing.found"}"#, r#"{"type":"rare.thing.found","tenant":"acme"}"#] {
        let (listed, pages) = list_all(&world, json, 10);
        assert_eq!(ids(&listed), ["last", "first"], "{json}");
        assert_eq!(pages, 2, "{json}");
    }
}

#[test]
fn a_list_ends_where_all_else_is_too_old() {
    let world = World::new(1);
    common::strand(&world, "billing.events", 3 * EVENTS_LOOKED_AT_MAX);
    world.clock.advance_ms(60 * MINUTE_MS);
    world.publish(event("new", "billing.invoice.paid"));
    let (listed, pages) = list_all(&world, r#"{"since":"2026-01-01T00:30:00Z"}"#, 10);
    assert_eq!((ids(&listed), pages), (vec!["new"], 1));
    let (listed, pages) = list_all(&world, r#"{"since":"2026-01-01T00:30:00Z","tenant":"acme"}"#, 10);
    assert_eq!((ids(&listed), pages), (vec!["new"], 1));
}

#[test]
fn what_is_recorded_meanwhile_does_not_disturb_a_list() {
    let world = World::new(2);
    for n in 0..9 {
        world.publish(event_of(&format!("t{n}"), &format!("e{n}"), "billing.invoice.paid", "{}"));
        world.clock.advance_ms(1);
    }
    let first = block_on(events(&world).list(&filter("{}"), 4, None)).unwrap();
    world.publish(event_of("t1", "late", "billing.invoice.paid", "{}"));
    world.publish(event_of("t2", "later", "billing.invoice.paid", "{}"));
    let mut seen = ids(&first.events).join(" ");
    let mut cursor = first.next_cursor;
    while let Some(next) = cursor {
        let page = block_on(events(&world).list(&filter("{}"), 4, Some(&next))).unwrap();
        seen = format!("{seen} {}", ids(&page.events).join(" "));
        cursor = page.next_cursor;
    }
    assert_eq!(seen.trim(), "e8 e7 e6 e5 e4 e3 e2 e1 e0");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let world = World::new(2);
    for (limit, cursor) in
        [(0, None), (201, None), (5, Some("1.2")), (5, Some("1.2.3")), (5, Some("nonsense"))]
    {
        for answer in [
            block_on(events(&world).list(&filter("{}"), limit, cursor)).err(),
            block_on(events(&world).follow(&filter("{}"), limit, cursor)).err(),
        ] {
            assert!(matches!(answer, Some(OperationError::Invalid { .. })), "{limit} {cursor:?}: {answer:?}");
        }
    }
    for (tenant, id) in [("acme", "nothing"), ("' OR 1=1 --", "e1")] {
        let answer = block_on(events(&world).view(tenant, id)).unwrap_err();
        assert_eq!(answer, OperationError::NotFound("event"));
        let answer = block_on(events(&world).payload(&world.blobs, tenant, id)).err();
        assert_eq!(answer, Some(OperationError::NotFound("event")));
    }
}

#[test]
fn the_payload_comes_as_it_was_wherever_it_is() {
    let world = World::new(1);
    let small = "{\"n\": 1.0,  \"n\":2}";
    let large = format!("[\"{}\"]", "é".repeat(50_000));
    for (id, payload) in [("small", small), ("large", large.as_str())] {
        world.publish(event_of("acme", id, "billing.invoice.paid", payload));
        let kept = block_on(events(&world).payload(&world.blobs, "acme", id)).unwrap();
        assert!(kept.get() == payload, "{id}");
    }
    let details = block_on(events(&world).view("acme", "large")).unwrap();
    assert!(details.payload.is_none() && details.payload_ref.is_some());
    run(
        world.shard().port(),
        "UPDATE event_ledger SET payload_ref = 'payloads/2026-01-01/other'
                                WHERE event_id = 'large'",
        Vec::new(),
    );
    let error = block_on(events(&world).payload(&world.blobs, "acme", "large")).unwrap_err().to_string();
    assert!(error.contains("another name"), "{error}");
}

#[test]
fn the_timeline_of_a_failed_send_and_its_delivery() {
    let world = World::new(1);
    world.set_down("billing.events", true);
    world.publish(event("e1", "billing.invoice.paid"));
    world.clock.advance_ms(3 * MINUTE_MS);
    world.sweep();
    world.set_down("billing.events", false);
    world.clock.advance_ms(5 * MINUTE_MS);
    world.sweep();
    assert_eq!(told(&world, "acme", "e1"), ["0 recorded", "0 send_failed", "0 send_failed", "0 enqueued"]);
    deliver(&world, "billing.events");
    let details = block_on(events(&world).view("acme", "e1")).unwrap();
    let timeline = &details.dispatches[0].timeline;
    let at = |ms| Timestamp::from_unix_ms(START_MS + ms);
    assert_eq!(
        timeline.iter().map(|entry| entry.at).collect::<Vec<_>>(),
        [at(0), at(0), at(3 * MINUTE_MS), at(8 * MINUTE_MS)]
    );
    assert_eq!(timeline[1].error.as_deref(), Some("queue is down"));
}

#[test]
fn the_timeline_of_handlers_a_replay_and_its_delivery() {
    let world = World::new(1);
    world.publish(event("e1", "billing.invoice.paid"));
    let message = generation("e1", "billing.events", 0);
    for (error, handled) in [("no card", true), ("no time", false)] {
        block_on(take(world.shard().port(), std::slice::from_ref(&message), "run", world.clock.now()))
            .unwrap();
        let outcome = Outcome::Released { error: error.to_owned(), handled };
        block_on(settle(world.shard().port(), vec![(message.clone(), outcome)], "run", world.clock.now()))
            .unwrap();
    }
    block_on(take(world.shard().port(), std::slice::from_ref(&message), "run", world.clock.now())).unwrap();
    let outcome = Outcome::DeadLettered("no card".to_owned());
    block_on(settle(world.shard().port(), vec![(message, outcome)], "run", world.clock.now())).unwrap();
    world.clock.advance_ms(20 * MINUTE_MS);
    world.take("billing.events");
    world.sweep();
    let details = block_on(events(&world).view("acme", "e1")).unwrap();
    let incident_id = details.dispatches[0].incident_id.clone().unwrap();
    block_on(replayer(&world).replay_one(&incident_id, &op(&world, "op-1"))).unwrap();
    deliver(&world, "billing.events");
    assert_eq!(
        told(&world, "acme", "e1"),
        ["0 recorded", "0 handle_failed", "0 given_back", "0 dead_lettered", "0 replayed", "1 delivered"]
    );
    let details = block_on(events(&world).view("acme", "e1")).unwrap();
    assert_eq!(details.dispatches[0].incident_id.as_deref(), Some(incident_id.as_str()));
    assert_eq!(details.dispatches[0].timeline[4].by.as_deref(), Some(incident_id.as_str()));
}

#[test]
fn a_history_keeps_its_newest_entries_and_their_beginnings() {
    let world = World::new(1);
    let incident_id = incident_of(&world, "acme", "e1", "billing.invoice.paid", "boom");
    world.queues.heal();
    let message = |replay| generation("e1", "billing.events", replay);
    block_on(replayer(&world).replay_one(&incident_id, &op(&world, "op-1"))).unwrap();
    for n in 0..HISTORY_ENTRIES_MAX + 5 {
        block_on(take(world.shard().port(), &[message(1)], "run", world.clock.now())).unwrap();
        let error = format!("{n} {}", "ü".repeat(HISTORY_ERROR_CHARS_MAX));
        let outcome = Outcome::Released { error, handled: true };
        block_on(settle(world.shard().port(), vec![(message(1), outcome)], "run", world.clock.now()))
            .unwrap();
    }
    let details = block_on(events(&world).view("acme", "e1")).unwrap();
    let failures: Vec<_> =
        details.dispatches[0].timeline.iter().filter_map(|entry| entry.error.as_ref()).collect();
    assert_eq!(failures.len(), HISTORY_ENTRIES_MAX);
    assert!(failures[0].starts_with("5 ") && failures[HISTORY_ENTRIES_MAX - 1].starts_with("54 "));
    assert!(failures.iter().all(|error| error.chars().count() == HISTORY_ERROR_CHARS_MAX));
}

#[test]
fn a_follower_gets_what_comes_after_it_began() {
    let world = World::new(2);
    world.publish(event("before", "billing.invoice.paid"));
    let began = block_on(events(&world).follow(&filter("{}"), 10, None)).unwrap();
    assert!(began.events.is_empty() && !began.more);
    world.clock.advance_ms(MINUTE_MS);
    world.publish(event("after", "billing.invoice.paid"));
    let next = block_on(events(&world).follow(&filter("{}"), 10, Some(&began.next_cursor))).unwrap();
    assert_eq!(ids(&next.events), ["after"]);
    let since = filter(r#"{"since":"2026-01-01T00:00:00Z"}"#);
    let all = block_on(events(&world).follow(&since, 10, None)).unwrap();
    assert_eq!(ids(&all.events), ["before", "after"]);
    let since = filter(r#"{"since":"2026-01-01T00:00:30Z","tenant":"acme"}"#);
    let later = block_on(events(&world).follow(&since, 10, None)).unwrap();
    assert_eq!(ids(&later.events), ["after"]);
}

#[test]
fn where_everything_was_deleted_a_follower_goes_on() {
    let world = World::new(1);
    common::strand(&world, "billing.events", 5);
    let began = block_on(events(&world).follow(&filter("{}"), 10, None)).unwrap();
    run(world.shard().port(), "DELETE FROM event_dispatches", Vec::new());
    run(world.shard().port(), "DELETE FROM event_ledger", Vec::new());
    let next = block_on(events(&world).follow(&filter("{}"), 10, Some(&began.next_cursor))).unwrap();
    world.publish(event("anew", "billing.invoice.paid"));
    let next = block_on(events(&world).follow(&filter("{}"), 10, Some(&next.next_cursor))).unwrap();
    assert_eq!(ids(&next.events), ["anew"]);
}

#[test]
fn the_number_of_a_moment_is_found_by_halving() {
    let world = World::new(1);
    for (seq, ms) in [(-5, 0), (-4, 10), (3, 20), (4, 20), (90, 30)] {
        let at = Timestamp::from_unix_ms(START_MS + ms);
        let sql = "INSERT INTO event_ledger (seq, tenant_id, event_id, type, occurred_at, payload, payload_hash, receipt, created_at)
                   VALUES (?1, 'acme', 'e' || ?1, 'a.b', ?2, '{}', '', '', ?2)";
        run(world.shard().port(), sql, vec![Value::Integer(seq), at.into()]);
    }
    for (ms, expected) in
        [(-1, -5), (0, -5), (1, -4), (10, -4), (11, 3), (20, 3), (21, 90), (30, 90), (31, 91)]
    {
        let at = Timestamp::from_unix_ms(START_MS + ms);
        let rows = run(world.shard().port(), swarm_domain::events::FIND_SEQ, vec![at.into()]);
        // Any number between two events divides them.
        let seq = rows[0]["seq"].as_i64().unwrap();
        let below = [-5, -4, 3, 4, 90].into_iter().filter(|other| *other < seq).count();
        let expected_below = [-5, -4, 3, 4, 90].into_iter().filter(|other| *other < expected).count();
        assert_eq!(below, expected_below, "{ms}: {seq}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Pages of any size show every event once, newest first, and a follower gets each once as well.
    #[test]
    fn no_event_is_lost_or_shown_twice(
        steps in prop::collection::vec((0_u8..6, 0_i64..3), 0..40),
        shards in 1_usize..4,
        limit in 1_usize..7,
    ) {
        let world = World::new(shards);
        let mut cursor = block_on(events(&world).follow(&filter("{}"), limit, None)).unwrap().next_cursor;
        let mut followed = Vec::new();
        for (n, (tenant, ms)) in steps.iter().enumerate() {
            world.clock.advance_ms(*ms);
            world.publish(event_of(&format!("t{tenant}"), &format!("e{n}"), "billing.invoice.paid", "{}"));
            if n % 3 == 0 {
                let page = block_on(events(&world).follow(&filter("{}"), limit, Some(&cursor))).unwrap();
                followed.extend(page.events);
                cursor = page.next_cursor;
            }
        }
        loop {
            let page = block_on(events(&world).follow(&filter("{}"), limit, Some(&cursor))).unwrap();
            followed.extend(page.events);
            cursor = page.next_cursor;
            if !page.more { break }
        }
        let (listed, _) = list_all(&world, "{}", limit);
        prop_assert!(listed.is_sorted_by_key(|event| std::cmp::Reverse(event.created_at)));
        let expected: BTreeSet<_> = (0..steps.len()).map(|n| format!("e{n}")).collect();
        for shown in [&listed, &followed] {
            let distinct: BTreeSet<_> = shown.iter().map(|event| event.event_id.clone()).collect();
            prop_assert_eq!(shown.len(), steps.len());
            prop_assert_eq!(&distinct, &expected);
        }
        if let Some((tenant, _)) = steps.first() {
            let (of_tenant, _) = list_all(&world, &format!(r#"{{"tenant":"t{tenant}"}}"#), limit);
            prop_assert_eq!(of_tenant.len(), steps.iter().filter(|(other, _)| other == tenant).count());
        }
    }
}

#[test]
fn everything_that_failed_is_found_by_its_state() {
    let world = World::new(2);
    world.publish(event_of("acme", "bad", "billing.invoice.paid", "{}"));
    fail_everything(&world, "boom");
    world.publish(event_of("shop", "good", "billing.invoice.paid", "{}"));
    let (listed, _) = list_all(&world, r#"{"status":["dlq"]}"#, 10);
    assert_eq!(ids(&listed), ["bad"]);
}
