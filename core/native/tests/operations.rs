//! What operators do with single incidents: list, view, triage, ignore, with every call refused or its answer lost.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::operators::{
    count, everywhere, fail_everything, foreign_incident, incident, incident_of, op, operations, view,
};
use common::{MINUTE_MS, World, event_of};
use futures_util::future::join;
use swarm_domain::incident::{
    Filter, FilterInput, IncidentEvent, IncidentState, Kind, Operation, OperationError,
};
use swarm_domain::ports::Clock;
use swarm_native::{Fault, block_on};

fn filter(json: &str) -> Filter {
    Filter::parse(serde_json::from_str::<FilterInput>(json).unwrap()).unwrap()
}

/// The ids of the events of a list, page by page.
fn pages(world: &World, json: &str, limit: usize) -> Vec<Vec<String>> {
    let (mut pages, mut cursor) = (Vec::new(), None);
    loop {
        let page = block_on(operations(world).list(&filter(json), limit, cursor.as_deref())).unwrap();
        pages.push(page.incidents.iter().map(|incident| incident.event_id.clone()).collect());
        cursor = page.next_cursor;
        if cursor.is_none() {
            return pages;
        }
    }
}

fn listed(world: &World, json: &str) -> String {
    pages(world, json, 100).concat().join(" ")
}

#[test]
fn a_list_begins_with_the_newest_whatever_the_shard() {
    for shards in [1, 3] {
        let world = World::new(shards);
        let mut expected = Vec::new();
        for n in 0..25 {
            incident_of(&world, &format!("tenant-{n}"), &format!("e{n:02}"), "billing.invoice.paid", "boom");
            // Several at one moment, so that pages end between them.
            world.clock.advance_ms(if n % 4 == 3 { 1 } else { 0 });
            expected.push(format!("e{n:02}"));
        }
        for limit in [1, 3, 24, 25, 200] {
            let pages = pages(&world, "{}", limit);
            assert!(pages.iter().all(|page| page.len() <= limit));
            assert_eq!(pages.len(), 25_usize.div_ceil(limit), "{shards} shards, {limit} a page");
            let mut all = pages.concat();
            let moments: Vec<usize> = all.iter().map(|id| id[1..].parse::<usize>().unwrap() / 4).collect();
            assert!(moments.windows(2).all(|pair| pair[0] >= pair[1]), "newest first: {all:?}");
            all.sort();
            assert_eq!(all, expected, "each once");
        }
    }
}

#[test]
fn filters() {
    let world = World::new(3);
    incident_of(&world, "acme", "a1", "billing.invoice.paid", "Connection REFUSED by 50% of_hosts");
    world.clock.advance_ms(MINUTE_MS);
    let b1 = incident_of(&world, "bolt", "b1", "billing.invoice.paid", "connection reset");
    world.clock.advance_ms(MINUTE_MS);
    world.publish(event_of("acme", "a2", "shop.order.paid", "{}"));
    fail_everything(&world, "out of stock");
    let foreign = foreign_incident(&world);
    block_on(operations(&world).triage(&b1, &op(&world, "op"))).unwrap();
    for (json, expected) in [
        ("{}", "a2 a2 b1 a1"),
        (r#"{"tenant":"acme"}"#, "a2 a2 a1"),
        (r#"{"tenant":"nobody"}"#, ""),
        (r#"{"topic":"audit.events"}"#, "a2"),
        (r#"{"tenant":"acme","topic":"billing.events"}"#, "a2 a1"),
        (r#"{"type":"shop.order.paid"}"#, "a2 a2"),
        (r#"{"event":"a2"}"#, "a2 a2"),
        (r#"{"event":"a2","topic":"audit.events","tenant":"acme"}"#, "a2"),
        (r#"{"event":"a2","tenant":"bolt"}"#, ""),
        (r#"{"type":"shop.order"}"#, ""),
        (r#"{"error":"connection"}"#, "b1 a1"),
        (r#"{"error":"50% OF_HOSTS"}"#, "a1"),
        (r#"{"error":"5_% of"}"#, ""),
        (r#"{"error":"' OR 1=1 --"}"#, ""),
        (r#"{"status":["triaged"]}"#, "b1"),
        (r#"{"status":["open","triaged"],"tenant":"bolt"}"#, "b1"),
        (r#"{"status":["resolved"]}"#, ""),
        (r#"{"since":"2026-01-01T00:01:00Z"}"#, "a2 a2 b1"),
        (r#"{"until":"2026-01-01T00:01:00Z"}"#, "a1"),
        (r#"{"since":"2026-01-01T00:00:00Z","until":"2026-01-01T00:00:00.001Z","tenant":"acme"}"#, "a1"),
        (
            r#"{"since":"2026-01-01T00:01:00Z","status":["open"],"error":"stock","topic":"audit.events"}"#,
            "a2",
        ),
    ] {
        let listed = listed(&world, json);
        assert_eq!(listed.split_whitespace().collect::<Vec<_>>().join(" "), expected, "{json}");
    }
    // The foreign one has no event, so its line above is empty, but it is there.
    assert_eq!(view(&world, &foreign).kind, Kind::Foreign);
    let long = format!(r#"{{"error":"{}"}}"#, "x".repeat(500));
    assert_eq!(listed(&world, &long), "", "LIKE would refuse a pattern beyond 50 bytes");
}

#[test]
fn a_list_refuses_what_makes_no_sense() {
    let world = World::new(1);
    for (limit, cursor) in [(0, None), (201, None), (10, Some("nonsense"))] {
        let answer = block_on(operations(&world).list(&Filter::default(), limit, cursor));
        assert!(matches!(answer, Err(OperationError::Invalid { .. })), "{limit} {cursor:?}");
    }
}

#[test]
fn a_list_asks_each_shard_once_and_a_tenants_shard_alone() {
    let world = World::new(3);
    let calls = || world.ledger.shards().map(|(_, shard)| shard.calls()).sum::<usize>();
    let before = calls();
    listed(&world, "{}");
    assert_eq!(calls() - before, 3);
    listed(&world, r#"{"tenant":"acme"}"#);
    assert_eq!(calls() - before, 4);
}

#[test]
fn an_incident_is_shown_with_its_message_and_its_log() {
    let world = World::new(3);
    let id = incident(&world, "e1");
    let triage = Operation { note: Some("mine"), ..op(&world, "op1") };
    block_on(operations(&world).triage(&id, &triage)).unwrap();
    world.clock.advance_ms(1);
    block_on(operations(&world).ignore(&id, &op(&world, "op2"))).unwrap();
    let details = block_on(operations(&world).view(&id)).unwrap();
    assert_eq!(
        serde_json::to_string(&details).unwrap(),
        format!(
            r#"{{"incidentId":"{id}","tenantId":"acme","eventId":"e1","topic":"billing.events","type":"billing.invoice.paid","kind":"dead_letter","sourceQueue":"billing-events","status":"ignored","errorMessage":"boom","retryCount":0,"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.001Z","resolvedAt":"2026-01-01T00:00:00.001Z","resolvedBy":"ops","payload":"{{\"n\":1.0}}","errorStack":"at handler","log":[{{"at":"2026-01-01T00:00:00.000Z","actor":"ops","action":"triage","note":"mine"}},{{"at":"2026-01-01T00:00:00.001Z","actor":"ops","action":"ignore"}}]}}"#
        )
    );
    assert_eq!(block_on(operations(&world).view("inc_nothing")), Err(OperationError::NotFound("incident")));
}

#[test]
fn every_move_from_every_state() {
    for from in IncidentState::ALL {
        for event in [IncidentEvent::Triage, IncidentEvent::Ignore] {
            let world = World::new(1);
            let id = incident(&world, "e1");
            everywhere(&world, format!("UPDATE dlq_incidents SET status = '{}'", from.name()).leak());
            let op = op(&world, "op");
            let answer = match event {
                IncidentEvent::Triage => block_on(operations(&world).triage(&id, &op)),
                _ => block_on(operations(&world).ignore(&id, &op)),
            };
            let log = count(&world, "SELECT count(*) AS n FROM ops_log");
            match from.after(event) {
                Ok(after) => {
                    assert_eq!(answer.unwrap().status, after, "{from:?} {event:?}");
                    assert_eq!(log, 1);
                }
                Err(_) => {
                    assert_eq!(answer, Err(OperationError::Illegal { from, event }));
                    assert_eq!((view(&world, &id).status, log), (from, 0), "{from:?} {event:?}");
                }
            }
        }
    }
}

#[test]
fn what_is_ignored_alerts_nobody_and_may_be_taken_up_again() {
    let world = World::new(1);
    let id = incident(&world, "e1");
    block_on(operations(&world).ignore(&id, &op(&world, "op1"))).unwrap();
    assert_eq!(count(&world, "SELECT count(*) AS n FROM dlq_incidents WHERE alert_at IS NOT NULL"), 0);
    let again = block_on(operations(&world).triage(&id, &op(&world, "op2"))).unwrap();
    assert_eq!((again.status, again.resolved_at, again.resolved_by), (IncidentState::Triaged, None, None));
    // Somebody has to deal with it after all, so it must not be forgotten.
    assert_eq!(count(&world, "SELECT count(*) AS n FROM dlq_incidents WHERE alert_at IS NOT NULL"), 1);
}

#[test]
fn a_note_has_its_limit() {
    let world = World::new(1);
    let id = incident(&world, "e1");
    let note = "x".repeat(2_001);
    let answer =
        block_on(operations(&world).triage(&id, &Operation { note: Some(&note), ..op(&world, "op") }));
    assert!(matches!(answer, Err(OperationError::Invalid { field: "note", .. })));
}

#[test]
fn a_lost_answer_changes_nothing_and_no_answer_is_said() {
    for shards in [1, 3] {
        for call in 0..2 {
            for fault in [Fault::Refused, Fault::AnswerLost] {
                let world = World::new(shards);
                let id = incident(&world, "e1");
                world.ledger.shard(world.ledger.shard_of("acme")).fail_at(call, fault);
                let answer = block_on(operations(&world).triage(&id, &op(&world, "op"))).unwrap();
                assert_eq!(answer.status, IncidentState::Triaged, "call {call} {fault:?}");
                assert_eq!(count(&world, "SELECT count(*) AS n FROM ops_log"), 1);
            }
        }
        let world = World::new(shards);
        let id = incident(&world, "e1");
        world.ledger.shard(world.ledger.shard_of("acme")).fail_always(Fault::AnswerLost);
        let answer = block_on(operations(&world).triage(&id, &op(&world, "op")));
        assert!(matches!(answer, Err(OperationError::Unavailable(_))));
        assert!(matches!(block_on(operations(&world).view(&id)), Err(OperationError::Unavailable(_))));
        let list = block_on(operations(&world).list(&Filter::default(), 10, None));
        assert!(
            matches!(list, Err(OperationError::Unavailable(_))),
            "half a list would be taken for a whole one"
        );
    }
}

#[test]
fn a_shard_that_is_down_hides_no_incident_of_another() {
    let world = World::new(3);
    let id = incident(&world, "e1");
    let own = world.ledger.shard_of("acme");
    world.ledger.shard((own + 1) % 3).fail_always(Fault::Refused);
    assert_eq!(view(&world, &id).status, IncidentState::Open);
    block_on(operations(&world).triage(&id, &op(&world, "op"))).unwrap();
    let unknown = block_on(operations(&world).view("inc_unknown"));
    assert!(matches!(unknown, Err(OperationError::Unavailable(_))), "it may be in the shard that is down");
}

#[test]
fn an_operation_that_runs_again_does_not_undo_what_came_after_it() {
    let world = World::new(1);
    let id = incident(&world, "e1");
    let first = op(&world, "op1");
    block_on(operations(&world).triage(&id, &first)).unwrap();
    block_on(operations(&world).ignore(&id, &op(&world, "op2"))).unwrap();
    // Triage may leave `ignored`, so only the log keeps the first operation from happening twice.
    let again = block_on(operations(&world).triage(&id, &first)).unwrap();
    assert_eq!(again.status, IncidentState::Ignored);
    assert_eq!(count(&world, "SELECT count(*) AS n FROM ops_log"), 2);
}

#[test]
fn of_two_operators_at_once_one_wins() {
    let world = World::new(1);
    let id = incident(&world, "e1");
    let operations = operations(&world);
    let (one, two) = (op(&world, "op1"), op(&world, "op2"));
    let (one, two) = block_on(join(operations.triage(&id, &one), operations.triage(&id, &two)));
    assert!(one.is_ok() != two.is_ok());
    let lost = if one.is_ok() { two } else { one };
    let from = IncidentState::Triaged;
    assert_eq!(lost, Err(OperationError::Illegal { from, event: IncidentEvent::Triage }));
    assert_eq!(world.clock.now(), view(&world, &id).updated_at);
}
