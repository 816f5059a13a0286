//! Accepting events on SQLite: what is answered, what is written, what is sent, and what all of it costs.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{MINUTE_MS, World, event, event_of, recorded, refused};
use futures_util::future::join;
use swarm_domain::limits::{PAYLOAD_BYTES_MAX, PAYLOAD_INLINE_BYTES_MAX};
use swarm_domain::message::Body;
use swarm_domain::receipt::{ReceiptStatus, RefusalCode};
use swarm_domain::routing::Routes;
use swarm_domain::states::DispatchState;
use swarm_native::{Fault, block_on};

#[test]
fn a_new_event_is_recorded_and_enqueued_in_one_round_trip() {
    let world = World::new(1);
    let receipt = world.accept_one(event("e1", "shop.order.paid"));
    let recorded = recorded(&receipt);
    assert_eq!(recorded.status, ReceiptStatus::Enqueued);
    assert_eq!(recorded.payload_matches, None);
    let topics: Vec<_> = recorded.dispatches.iter().map(|d| (d.topic.as_str(), d.status)).collect();
    let enqueued = DispatchState::Enqueued;
    assert_eq!(topics, [("audit.events", enqueued), ("billing.events", enqueued)]);
    assert_eq!(world.shard().calls(), 1);
    assert_eq!((world.take("billing.events").len(), world.take("audit.events").len()), (1, 1));
    let event = &world.rows("SELECT * FROM event_ledger")[0];
    assert_eq!((&event["source"], &event["payload"]), (&"test".into(), &"{}".into()));
}

#[test]
fn a_duplicate_writes_nothing_sends_nothing_and_costs_one_round_trip() {
    for settled in [true, false] {
        let world = World::new(1);
        let original = event("e1", "shop.order.paid");
        if settled {
            world.publish(original.clone())
        } else {
            world.accept_one(original.clone())
        };
        let (calls, sends) = (world.shard().calls(), world.queues.calls());
        let before = world.rows("SELECT total_changes() AS n");
        let receipt = world.accept_one(original);
        let recorded = recorded(&receipt);
        assert_eq!(recorded.status, ReceiptStatus::DuplicateAcknowledged);
        assert_eq!(recorded.payload_matches, Some(true));
        assert_eq!(recorded.dispatches.len(), 2);
        assert_eq!(world.rows("SELECT total_changes() AS n"), before);
        assert_eq!(world.shard().calls(), calls + 1);
        assert_eq!(world.queues.calls(), sends);
    }
}

#[test]
fn a_duplicate_with_another_payload_is_told_so_and_the_first_one_stays() {
    let world = World::new(1);
    world.publish(event_of("acme", "e1", "billing.invoice.paid", r#"{"amount":1}"#));
    let receipt = world.publish(event_of("acme", "e1", "billing.invoice.paid", r#"{"amount":2}"#));
    assert_eq!(recorded(&receipt).payload_matches, Some(false));
    assert_eq!(world.rows("SELECT payload FROM event_ledger")[0]["payload"], r#"{"amount":1}"#);
}

#[test]
fn tenants_do_not_share_ids() {
    let world = World::new(1);
    for tenant in ["acme", "shop"] {
        let receipt = world.publish(event_of(tenant, "e1", "billing.invoice.paid", "{}"));
        assert_eq!(recorded(&receipt).status, ReceiptStatus::Enqueued);
    }
    assert_eq!(world.waiting("billing.events"), 2);
}

#[test]
fn one_refused_topic_makes_it_accepted_and_a_later_duplicate_resends_only_that_topic() {
    let world = World::new(1);
    world.set_down("billing.events", true);
    let stored = r#"{"amount": 1.0}"#;
    let receipt = world.publish(event_of("acme", "e1", "shop.order.paid", stored));
    assert_eq!(recorded(&receipt).status, ReceiptStatus::Accepted);
    let failed = recorded(&receipt).dispatches.iter().find(|d| d.topic.as_str() == "billing.events").unwrap();
    assert_eq!(failed.status, DispatchState::Failed);
    assert_eq!(failed.next_retry_at.as_deref(), Some("2026-01-01T00:02:00.000Z"));
    assert_eq!(world.dispatches(), ["e1 audit.events enqueued", "e1 billing.events failed"]);
    let row = &world.rows("SELECT attempts, last_error FROM event_dispatches WHERE status = 'failed'")[0];
    assert_eq!((&row["attempts"], &row["last_error"]), (&1.into(), &"queue is down".into()));

    world.set_down("billing.events", false);
    let again = event_of("acme", "e1", "shop.order.paid", r#"{"amount": 2}"#);
    let early = world.publish(again.clone());
    assert_eq!(recorded(&early).dispatches[1].status, DispatchState::Failed);
    assert_eq!(world.waiting("billing.events"), 0, "it is not due yet");

    world.clock.advance_ms(2 * MINUTE_MS);
    let late = world.publish(again);
    assert_eq!(recorded(&late).status, ReceiptStatus::DuplicateAcknowledged);
    assert!(recorded(&late).dispatches.iter().all(|d| d.status == DispatchState::Enqueued));
    let messages = world.take("billing.events");
    assert_eq!(messages[0].body, Body::Inline(stored.to_owned()), "the payload that was stored first");
    assert_eq!((messages.len(), messages[0].attempt), (1, 2));
    assert_eq!(world.take("audit.events").len(), 1, "the topic that had it got nothing more");
    assert_eq!(world.dispatches(), ["e1 audit.events enqueued", "e1 billing.events enqueued"]);
}

#[test]
fn of_two_duplicates_at_once_one_resends_what_is_due() {
    let world = World::new(1);
    world.set_down("billing.events", true);
    world.publish(event("e1", "billing.invoice.paid"));
    world.set_down("billing.events", false);
    world.clock.advance_ms(2 * MINUTE_MS);
    let again = || world.publish_all(vec![event("e1", "billing.invoice.paid")]);
    block_on(join(again(), again()));
    assert_eq!(world.waiting("billing.events"), 1);
}

#[test]
fn a_duplicate_never_reaches_a_topic_that_its_event_was_not_recorded_for() {
    let mut world = World::new(1);
    world.publish(event("e1", "billing.invoice.paid"));
    world.routes =
        Routes::parse(r#"[{"match": "**", "topics": ["billing.events", "audit.events"]}]"#).unwrap();
    let receipt = world.publish(event("e1", "billing.invoice.paid"));
    assert_eq!(recorded(&receipt).dispatches.len(), 1);
    assert_eq!(world.dispatches(), ["e1 billing.events enqueued"]);
    assert_eq!(world.waiting("audit.events"), 0);
}

#[test]
fn a_topic_without_a_binding_fails_with_that_reason_and_does_not_hold_up_the_others() {
    let world = World::new(1);
    let receipt = world.publish(event("e1", "lost.order.paid"));
    assert_eq!(recorded(&receipt).status, ReceiptStatus::Accepted);
    assert_eq!(world.dispatches(), ["e1 audit.events enqueued", "e1 unbound.events failed"]);
    let row = &world.rows("SELECT last_error FROM event_dispatches WHERE status = 'failed'")[0];
    assert_eq!(row["last_error"], "no binding TOPIC_UNBOUND_EVENTS for this topic");
}

#[test]
fn a_large_payload_goes_to_the_blobs_and_the_message_refers_to_it() {
    let world = World::new(1);
    let text = |size: usize| format!("\"{}\"", "x".repeat(size - 2));
    world.publish(event_of("acme", "small", "billing.invoice.paid", &text(PAYLOAD_INLINE_BYTES_MAX)));
    assert_eq!(world.blobs.calls(), 0);
    let large = text(PAYLOAD_INLINE_BYTES_MAX + 1);
    for id in ["large", "same"] {
        world.publish(event_of("acme", id, "billing.invoice.paid", &large));
    }
    let messages = world.take("billing.events");
    assert!(matches!(&messages[0].body, Body::Inline(payload) if payload.len() == PAYLOAD_INLINE_BYTES_MAX));
    let key = world.blobs.port().keys().pop().unwrap();
    assert_eq!(world.blobs.port().keys().len(), 1, "equal payloads share an object");
    assert_eq!((&messages[1].body, &messages[2].body), (&Body::Blob(key.clone()), &Body::Blob(key)));
    assert_eq!(world.rows("SELECT 1 AS n FROM event_ledger WHERE payload IS NULL").len(), 2);
}

#[test]
fn a_payload_that_cannot_be_stored_refuses_its_event_only() {
    let world = World::new(1);
    world.blobs.fail_always(Fault::Refused);
    let large = format!("\"{}\"", "x".repeat(PAYLOAD_INLINE_BYTES_MAX));
    let events = vec![
        event_of("acme", "large", "billing.invoice.paid", &large),
        event("small", "billing.invoice.paid"),
    ];
    let receipts = block_on(world.publish_all(events));
    assert_eq!(refused(&receipts[0]).code, RefusalCode::Unavailable);
    assert!(refused(&receipts[0]).retryable);
    assert_eq!(recorded(&receipts[1]).status, ReceiptStatus::Enqueued);
    assert_eq!(world.dispatches(), ["small billing.events enqueued"]);
}

#[test]
fn a_batch_answers_in_order_with_repeats_and_refusals_in_their_places() {
    for shards in [1, 3] {
        let world = World::new(shards);
        let paid = "billing.invoice.paid";
        let receipts = block_on(world.publish_all(vec![
            event_of("acme", "e1", paid, "1"),
            event("", paid),
            event_of("shop", "e1", paid, "1"),
            event_of("acme", "e1", paid, "1"),
            event_of("acme", "e1", paid, "2"),
            event("e2", "unrouted.thing"),
            event_of("acme", "big", paid, &format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX))),
        ]));
        assert_eq!(receipts.len(), 7);
        assert_eq!(recorded(&receipts[0]).status, ReceiptStatus::Enqueued);
        assert_eq!(refused(&receipts[1]).field.as_deref(), Some("id"));
        assert_eq!(recorded(&receipts[2]).status, ReceiptStatus::Enqueued);
        for (receipt, matches) in [(&receipts[3], true), (&receipts[4], false)] {
            assert_eq!(recorded(receipt).status, ReceiptStatus::DuplicateAcknowledged);
            assert_eq!(recorded(receipt).payload_matches, Some(matches));
        }
        assert_eq!(recorded(&receipts[5]).status, ReceiptStatus::Undelivered);
        assert_eq!(refused(&receipts[6]).code, RefusalCode::PayloadTooLarge);
        assert_eq!(world.waiting("billing.events"), 2);
        let payloads =
            world.rows("SELECT payload FROM event_ledger WHERE tenant_id = 'acme' AND event_id = 'e1'");
        assert_eq!(payloads[0]["payload"], "1");
    }
}

#[test]
fn an_event_without_a_route_is_recorded_as_undelivered() {
    let world = World::new(1);
    let receipt = world.publish(event("e1", "unrouted.thing"));
    assert_eq!(recorded(&receipt).status, ReceiptStatus::Undelivered);
    assert_eq!(world.rows("SELECT status FROM event_status")[0]["status"], "undelivered");
    let again = world.publish(event("e1", "unrouted.thing"));
    assert_eq!(recorded(&again).status, ReceiptStatus::DuplicateAcknowledged);
    assert_eq!(recorded(&again).payload_matches, Some(true));
}

#[test]
fn a_lost_answer_of_the_accepting_batch_still_answers_enqueued() {
    let world = World::new(1);
    world.shard().fail_at(0, Fault::AnswerLost);
    let receipt = world.publish(event("e1", "shop.order.paid"));
    assert_eq!(recorded(&receipt).status, ReceiptStatus::Enqueued);
    assert_eq!(recorded(&receipt).payload_matches, None);
    assert_eq!((world.waiting("billing.events"), world.waiting("audit.events")), (1, 1));
    assert_eq!(world.dispatches(), ["e1 audit.events enqueued", "e1 billing.events enqueued"]);
}

#[test]
fn without_a_database_the_answer_is_unavailable_and_nothing_is_sent() {
    for fault in [Fault::Refused, Fault::AnswerLost] {
        let world = World::new(1);
        world.shard().fail_always(fault);
        let receipt = world.accept_one(event("e1", "shop.order.paid"));
        assert_eq!(refused(&receipt).code, RefusalCode::Unavailable);
        assert!(refused(&receipt).retryable);
        assert_eq!((world.shard().calls(), world.queues.calls()), (2, 0), "one retry and no send");

        world.shard().heal();
        world.clock.advance_ms(2 * MINUTE_MS);
        let receipt = world.publish(event("e1", "shop.order.paid"));
        assert!(recorded(&receipt).dispatches.iter().all(|d| d.status == DispatchState::Enqueued));
        assert_eq!((world.waiting("billing.events"), world.waiting("audit.events")), (1, 1));
    }
}

#[test]
fn a_shard_that_is_down_refuses_its_own_tenants_only() {
    let world = World::new(3);
    world.shard().fail_always(Fault::Refused);
    let tenants: Vec<String> = (0..12).map(|n| format!("tenant-{n}")).collect();
    let events = tenants.iter().map(|tenant| event_of(tenant, "e1", "billing.invoice.paid", "{}")).collect();
    let receipts = block_on(world.publish_all(events));
    let down = tenants.iter().filter(|tenant| world.ledger.shard_of(tenant) == 0).count();
    assert!(down > 0 && down < tenants.len());
    for (tenant, receipt) in tenants.iter().zip(&receipts) {
        if world.ledger.shard_of(tenant) == 0 {
            assert_eq!(refused(receipt).code, RefusalCode::Unavailable);
        } else {
            assert_eq!(recorded(receipt).status, ReceiptStatus::Enqueued);
        }
    }
    assert_eq!(world.waiting("billing.events"), tenants.len() - down);
}

#[test]
fn a_batch_over_shards_costs_one_round_trip_to_each() {
    let world = World::new(3);
    let events =
        (0..100).map(|n| event_of(&format!("tenant-{n}"), "e1", "billing.invoice.paid", "{}")).collect();
    let accepted = block_on(world.accept(events));
    assert!(accepted.receipts.iter().all(|r| recorded(r).status == ReceiptStatus::Enqueued));
    assert_eq!(world.ledger.shards().map(|(_, shard)| shard.calls()).collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn a_payload_is_kept_to_the_byte_through_ledger_and_queue() {
    let world = World::new(1);
    for (number, payload) in [
        r#"{"big":12345678901234567890123,"one":1.0,"dup":1,"dup":2}"#,
        r#"{ "a" : "\u0000\ud800 \u00e9" , "b":[ ] }"#,
        "\"👩‍👩‍👧‍👦 e\u{301} \u{e9} \u{2028}\"",
        "-0.0e-10",
        "null",
    ]
    .iter()
    .enumerate()
    {
        let id = format!("e{number}");
        world.publish(event_of("acme", &id, "billing.invoice.paid", payload));
        assert_eq!(world.take("billing.events")[0].body, Body::Inline((*payload).to_owned()));
        let stored = world.rows("SELECT payload FROM event_ledger ORDER BY seq DESC LIMIT 1");
        assert_eq!(stored[0]["payload"], **payload);
    }
}
