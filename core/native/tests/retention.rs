//! Retention on SQLite: what is old and done goes to the archive and then out of the ledger, whatever fails in between;
//! what is open stays; and everything comes back to the byte.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::io::Read;

use common::{MINUTE_MS, World, event_of, rows, run, topic};
use flate2::read::GzDecoder;
use serde_json::Value as Json;
use swarm_domain::incident::{Operation, incident_id_of};
use swarm_domain::limits::RETENTION_PAGE_MAX;
use swarm_domain::ports::{BlobKeeping, Blobs, Clock};
use swarm_domain::retention::{Periods, RestoreError, Restored, Restorer, Retained, Retention};
use swarm_native::{Fault, block_on, yield_now};

const DAY_MS: i64 = 24 * 60 * MINUTE_MS;
const PAID: &str = "billing.invoice.paid";
const EXACT: &str = r#"{"n": 12345678901234567890, "x": 1.0, "n": "é\u00e9"}"#;

/// Small payloads are rows, this one is an object.
fn large() -> String {
    format!("\"{}\"", "x".repeat(70_000))
}

/// Publishes and delivers.
fn deliver(world: &World, tenant: &str, id: &str, payload: &str) {
    world.publish(event_of(tenant, id, PAID, payload));
    settle_all(world, "delivered");
}

/// Brings every dispatch that is under way to `status`.
fn settle_all(world: &World, status: &str) {
    for (_, shard) in world.ledger.shards() {
        let sql = "UPDATE event_dispatches SET status = ?1, next_retry_at = NULL, claimed_by = NULL, updated_at = ?2
                    WHERE next_retry_at IS NOT NULL";
        run(shard.port(), sql, vec![status.into(), world.clock.now().into()]);
    }
}

/// An event that failed for good, with its incident in this state.
fn fail(world: &World, tenant: &str, id: &str, status: &str) {
    world.publish(event_of(tenant, id, PAID, "{}"));
    settle_all(world, "dead_lettered");
    let sql = "INSERT INTO dlq_incidents (incident_id, kind, tenant_id, event_id, topic, type, source_queue, error_message, payload,
                                          status, created_at, updated_at)
               VALUES (?1, 'dead_letter', ?2, ?3, 'billing.events', 'billing.invoice.paid', 'billing-events', 'declined', '{}',
                       ?4, ?5, ?5)";
    let incident = incident_id_of(tenant, id, "billing.events");
    let values = vec![incident.into(), tenant.into(), id.into(), status.into(), world.clock.now().into()];
    run(world.ledger.shard(world.ledger.shard_of(tenant)).port(), sql, values);
}

async fn retain_as(world: &World, token: &str, periods: &Periods, events_max: u64) -> Retained {
    let retention = Retention { ledger: &world.ledger, blobs: &world.blobs, clock: &world.clock, periods };
    retention.run(token, world.clock.now().plus_ms(10 * MINUTE_MS), events_max).await
}

fn retain(world: &World) -> Retained {
    block_on(retain_as(world, &world.token(), &Periods::default(), 10_000))
}

fn days(world: &World, days: i64) {
    world.clock.advance_ms(days * DAY_MS);
}

fn restore(world: &World, key: &str, topics: &[&str]) -> Result<Restored, RestoreError> {
    let restorer = Restorer { ledger: &world.ledger, blobs: &world.blobs };
    let topics: Vec<_> = topics.iter().map(|name| topic(name)).collect();
    let id = world.token();
    let op = Operation { id: &id, actor: "ada", note: None, now: world.clock.now() };
    block_on(restorer.restore(key, &topics, &op))
}

/// The parts of the archive.
fn parts(world: &World) -> Vec<String> {
    world.blobs.port().keys().into_iter().filter(|key| key.ends_with(".ndjson.gz")).collect()
}

fn lines(world: &World) -> Vec<Json> {
    let mut all = Vec::new();
    for key in parts(world) {
        let object = block_on(world.blobs.port().get(&key)).unwrap().unwrap();
        let mut text = String::new();
        GzDecoder::new(object.as_slice()).read_to_string(&mut text).unwrap();
        all.extend(text.lines().map(|line| serde_json::from_str(line).unwrap()));
    }
    all
}

fn events(world: &World) -> Vec<String> {
    let mut ids: Vec<String> = world
        .rows("SELECT tenant_id || '/' || event_id AS id FROM event_ledger")
        .iter()
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

/// Everything about events, but for what says when and by whom they were put in.
fn snapshot(world: &World) -> Vec<Json> {
    let mut all = world.rows(
        "SELECT tenant_id, event_id, type, occurred_at, source, subject, context, payload, payload_hash, created_at
           FROM event_ledger",
    );
    all.extend(world.rows(
        "SELECT tenant_id, event_id, topic, status, attempts, max_attempts, starts, replays, replay_of, last_error, created_at
           FROM event_dispatches",
    ));
    all.extend(world.rows("SELECT * FROM dlq_incidents").into_iter().map(|mut row| {
        row.as_object_mut().unwrap().remove("seq");
        row
    }));
    all.sort_by_key(Json::to_string);
    all
}

#[test]
fn old_events_that_are_done_go_and_all_others_stay() {
    for shards in [1, 3] {
        let world = World::new(shards);
        deliver(&world, "acme", "done", EXACT);
        world.publish(event_of("acme", "nowhere", "other.thing.happened", "{}"));
        world.publish(event_of("globex", "waiting", PAID, "{}"));
        let waiting = "UPDATE event_dispatches SET status = 'enqueued' WHERE event_id = 'waiting'";
        world.ledger.shards().for_each(|(_, shard)| drop(run(shard.port(), waiting, Vec::new())));
        days(&world, 1);
        world.ledger.shards().for_each(|(_, shard)| {
            drop(run(
                shard.port(),
                "UPDATE event_dispatches SET next_retry_at = NULL WHERE status = 'delivered'",
                Vec::new(),
            ));
        });
        for status in ["open", "triaged", "retrying", "ignored", "resolved"] {
            let kept = world.rows("SELECT * FROM event_dispatches WHERE event_id = 'waiting'");
            fail(&world, "acme", status, status);
            // The event that waits goes on waiting.
            let again = "UPDATE event_dispatches SET status = 'enqueued', next_retry_at = ?1 WHERE event_id = 'waiting'";
            let at = kept[0]["next_retry_at"].as_str().unwrap();
            world.ledger.shards().for_each(|(_, shard)| drop(run(shard.port(), again, vec![at.into()])));
        }
        days(&world, 80);
        deliver(&world, "acme", "young", "{}");
        let again =
            "UPDATE event_dispatches SET status = 'enqueued', next_retry_at = '2027-01-01 00:00:00.000'
                      WHERE event_id = 'waiting'";
        world.ledger.shards().for_each(|(_, shard)| drop(run(shard.port(), again, Vec::new())));
        assert_eq!(retain(&world).events, 0, "nothing is 90 days old");
        days(&world, 15);
        let retained = retain(&world);
        assert_eq!((retained.events, retained.kept), (4, 4), "{retained:?}");
        assert!(retained.finished && retained.errors.is_empty());
        assert_eq!(
            events(&world),
            ["acme/open", "acme/retrying", "acme/triaged", "acme/young", "globex/waiting"]
        );
        let mut archived: Vec<_> =
            lines(&world).iter().map(|line| line["eventId"].as_str().unwrap().to_owned()).collect();
        archived.sort();
        assert_eq!(archived, ["done", "ignored", "nowhere", "resolved"]);
        assert_eq!(retained.parts as usize, parts(&world).len());
        assert_eq!(retain(&world).events, 0);
    }
}

#[test]
fn tenants_have_days_of_their_own() {
    let world = World::new(3);
    let periods = Periods::parse(r#"{"default_days":60,"tenants":{"acme":3}}"#).unwrap();
    for tenant in ["acme", "globex"] {
        deliver(&world, tenant, "e1", "{}");
    }
    let run = || block_on(retain_as(&world, &world.token(), &periods, 10_000)).events;
    days(&world, 3);
    assert_eq!(run(), 0);
    world.clock.advance_ms(1);
    assert_eq!((run(), events(&world)), (1, vec!["globex/e1".to_owned()]));
    days(&world, 57);
    assert_eq!((run(), events(&world).len()), (1, 0));
}

#[test]
fn counts_are_exact_over_many_pages_and_runs() {
    let world = World::new(3);
    let per_tenant = 120;
    for n in 0..10 {
        for id in 0..per_tenant {
            world.accept_one(event_of(&format!("tenant-{n}"), &format!("e{id}"), PAID, "{}"));
        }
        world.clock.advance_ms(7);
    }
    settle_all(&world, "delivered");
    days(&world, 91);
    let (mut total, mut runs) = (0, 0);
    loop {
        let retained = block_on(retain_as(&world, &world.token(), &Periods::default(), 300));
        let left = events(&world).len() as u64;
        total += retained.events;
        assert_eq!(total + left, 10 * per_tenant, "run {runs}");
        runs += 1;
        if left == 0 {
            break;
        }
        assert!(runs < 40, "{retained:?}");
    }
    assert_eq!(lines(&world).len() as u64, 10 * per_tenant);
    assert!(runs > 1);
}

#[test]
fn a_tenant_with_many_open_events_does_not_hold_up_those_after_it() {
    let world = World::new(1);
    for n in 0..50 {
        fail(&world, "acme", &format!("open-{n}"), "open");
    }
    deliver(&world, "acme", "done", "{}");
    deliver(&world, "globex", "done", "{}");
    days(&world, 91);
    let (mut runs, mut finished) = (0, false);
    while !events(&world).iter().all(|id| id.starts_with("acme/open")) {
        finished |= block_on(retain_as(&world, &world.token(), &Periods::default(), 10)).finished;
        runs += 1;
        assert!(runs <= 6);
    }
    assert!(!finished && runs == 6, "{runs}");
    assert!(retain(&world).events == 0 && retain(&world).finished);
}

#[test]
fn a_page_that_is_full_is_followed_by_the_next() {
    let world = World::new(1);
    for id in 0..=RETENTION_PAGE_MAX {
        world.accept_one(event_of("acme", &format!("e{id}"), PAID, "{}"));
    }
    settle_all(&world, "delivered");
    days(&world, 91);
    let retained = retain(&world);
    assert_eq!((retained.events as usize, retained.parts), (RETENTION_PAGE_MAX + 1, 2));
}

/// Every call of every port fails in both ways; the next runs are fine.
#[test]
fn whatever_fails_nothing_is_lost_and_nothing_is_counted_twice() {
    for shards in [1, 3] {
        for fault in [Fault::Refused, Fault::AnswerLost] {
            for call in 0..14 {
                for port in 0..=shards {
                    let world = World::new(shards);
                    for tenant in ["acme", "globex", "initech"] {
                        deliver(&world, tenant, "small", EXACT);
                        deliver(&world, tenant, "large", &large());
                        fail(&world, tenant, "failed", "ignored");
                    }
                    let before = snapshot(&world);
                    days(&world, 91);
                    for at in [call, call + 1] {
                        match port.checked_sub(1) {
                            None => world.blobs.fail_at(at, fault),
                            Some(shard) => world.ledger.shard(shard).fail_at(at, fault),
                        }
                    }
                    let what = format!("{shards} shards, port {port}, call {call}, {fault:?}");
                    let first = retain(&world);
                    let left = events(&world).len() as u64;
                    assert!(first.events + left <= 9, "{what}");
                    world.blobs.heal();
                    world.ledger.shards().for_each(|(_, shard)| shard.heal());
                    // The lane of a run that could not give it back ends first.
                    days(&world, 1);
                    let second = retain(&world);
                    assert!(second.errors.is_empty(), "{what}: {second:?}");
                    assert_eq!(second.events, left, "{what}");
                    assert!(events(&world).is_empty(), "{what}");
                    for key in parts(&world) {
                        restore(&world, &key, &[]).unwrap();
                    }
                    assert_eq!(snapshot(&world), before, "{what}");
                    for row in
                        world.rows("SELECT payload_ref FROM event_ledger WHERE payload_ref IS NOT NULL")
                    {
                        let object = block_on(world.blobs.port().get(row["payload_ref"].as_str().unwrap()));
                        assert_eq!(object.unwrap().unwrap(), large().into_bytes(), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn wherever_a_run_dies_the_next_one_ends_the_work() {
    use std::future::Future;
    use std::task::{Context, Waker};
    for polls in 0..80 {
        let world = World::new(3);
        for tenant in ["acme", "globex", "initech"] {
            deliver(&world, tenant, "small", EXACT);
            deliver(&world, tenant, "large", &large());
        }
        let before = snapshot(&world);
        days(&world, 91);
        {
            let periods = Periods::default();
            let mut dying = Box::pin(retain_as(&world, "dying", &periods, 10_000));
            let mut context = Context::from_waker(Waker::noop());
            for _ in 0..polls {
                if dying.as_mut().poll(&mut context).is_ready() {
                    break;
                }
            }
        }
        days(&world, 1);
        assert!(retain(&world).errors.is_empty());
        assert!(events(&world).is_empty(), "{polls} polls");
        for key in parts(&world) {
            restore(&world, &key, &[]).unwrap();
        }
        assert_eq!(snapshot(&world), before, "{polls} polls");
    }
}

#[test]
fn two_runs_at_once_do_the_work_once() {
    let world = World::new(3);
    for n in 0..30 {
        deliver(&world, &format!("tenant-{n}"), "e1", "{}");
    }
    days(&world, 91);
    let periods = Periods::default();
    let both = futures_util::future::join(
        retain_as(&world, "one", &periods, 10_000),
        retain_as(&world, "two", &periods, 10_000),
    );
    let (one, two) = block_on(both);
    assert_eq!(one.events + two.events, 30);
    assert!(one.busy != two.busy);
}

/// After the archive has the event and before it is deleted, whichever call that is, an operator has it repeated.
#[test]
fn a_replay_that_begins_meanwhile_keeps_the_event() {
    let mut kept = 0;
    for polls in 0..40 {
        let world = World::new(1);
        deliver(&world, "acme", "e1", EXACT);
        deliver(&world, "acme", "e2", EXACT);
        days(&world, 91);
        let replay = async {
            for _ in 0..polls {
                yield_now().await;
            }
            let sql = "UPDATE event_dispatches SET status = 'pending', replays = 1, next_retry_at = ?1, updated_at = ?1
                        WHERE event_id = 'e1'";
            run(world.shard().port(), sql, vec![world.clock.now().into()]);
        };
        let periods = Periods::default();
        let (retained, ()) =
            block_on(futures_util::future::join(retain_as(&world, "run", &periods, 10_000), replay));
        let there = events(&world);
        let dispatches = world.dispatches();
        if there.is_empty() {
            assert_eq!(retained.events, 2, "it was deleted before the replay could begin");
        } else {
            kept += 1;
            assert_eq!((there, retained.events, retained.kept), (vec!["acme/e1".to_owned()], 1, 1));
            assert_eq!(dispatches, ["e1 billing.events pending"]);
        }
    }
    assert!(kept > 5 && kept < 40, "{kept}");
}

#[test]
fn an_event_whose_replay_has_ended_is_left_alone_while_a_queue_may_hold_its_message() {
    let world = World::new(1);
    deliver(&world, "acme", "e1", "{}");
    days(&world, 91);
    run(world.shard().port(), "UPDATE event_dispatches SET updated_at = ?1", vec![world.clock.now().into()]);
    days(&world, 14);
    assert_eq!((retain(&world).kept, events(&world).len()), (1, 1));
    world.clock.advance_ms(1);
    assert_eq!(retain(&world).events, 1);
}

#[test]
fn a_payload_goes_once_nobody_in_any_shard_refers_to_it() {
    let world = World::new(3);
    let periods =
        Periods::parse(r#"{"default_days":90,"tenants":{"tenant-0":2,"tenant-1":4,"tenant-2":6}}"#).unwrap();
    for n in 0..3 {
        deliver(&world, &format!("tenant-{n}"), "e1", &large());
    }
    assert_eq!(world.rows("SELECT DISTINCT payload_ref FROM event_ledger").len(), 3);
    assert_eq!(world.blobs.port().keys().len(), 1, "the three share an object");
    // An accepting call died between its object and its row.
    block_on(world.blobs.port().put(&format!("payloads/2026-01-01/{}", "a".repeat(64)), vec![1])).unwrap();
    let mut payloads = Vec::new();
    for _ in 0..7 {
        days(&world, 1);
        world.clock.advance_ms(1);
        payloads.push(block_on(retain_as(&world, &world.token(), &periods, 10_000)).payloads);
    }
    assert_eq!(payloads, [0, 1, 0, 0, 0, 1, 0], "the orphan first, and the payload with its last event");
    let keys = world.blobs.port().keys();
    let hash = swarm_domain::ids::payload_hash(&large());
    assert!(keys.contains(&format!("events/payloads/{hash}")));
    assert!(keys.iter().all(|key| key.starts_with("events/")), "{keys:?}");
    for key in parts(&world) {
        assert_eq!(restore(&world, &key, &[]).unwrap().restored, 1);
    }
    let keys = world.rows("SELECT DISTINCT payload_ref FROM event_ledger WHERE payload IS NULL");
    let object = block_on(world.blobs.port().get(keys[0]["payload_ref"].as_str().unwrap()));
    assert_eq!(object.unwrap().unwrap(), large().into_bytes());
}

/// A call puts the object of its day, and its row comes as late as it likes; retention runs in between.
#[test]
fn a_payload_that_comes_again_is_not_taken_from_the_call_that_brings_it() {
    let world = World::new(1);
    deliver(&world, "acme", "old", &large());
    days(&world, 91);
    for polls in 0..30 {
        let periods = Periods::default();
        let accept =
            async { world.accept(vec![event_of("acme", &format!("new-{polls}"), PAID, &large())]).await };
        let retention = async {
            for _ in 0..polls {
                yield_now().await;
            }
            retain_as(&world, &world.token(), &periods, 10_000).await
        };
        block_on(futures_util::future::join(accept, retention));
        let row =
            &rows(world.shard().port(), "SELECT payload_ref FROM event_ledger ORDER BY seq DESC LIMIT 1")[0];
        assert!(block_on(world.blobs.port().get(row["payload_ref"].as_str().unwrap())).unwrap().is_some());
    }
}

#[test]
fn an_event_whose_payload_is_missing_stays_and_says_so() {
    let world = World::new(1);
    deliver(&world, "acme", "broken", &large());
    deliver(&world, "acme", "fine", "{}");
    let keys = world.blobs.port().keys();
    block_on(world.blobs.port().delete(&keys)).unwrap();
    days(&world, 91);
    let retained = retain(&world);
    assert_eq!((retained.events, retained.kept, retained.errors.len()), (1, 1, 1));
    assert!(retained.errors[0].to_string().contains(&keys[0]));
    assert_eq!(events(&world), ["acme/broken"]);
}

#[test]
fn restoring_twice_puts_nothing_in_twice_and_sends_nothing_twice() {
    for shards in [1, 3] {
        let world = World::new(shards);
        deliver(&world, "acme", "e1", EXACT);
        fail(&world, "acme", "e2", "ignored");
        world.take("billing.events");
        days(&world, 91);
        retain(&world);
        let keys = parts(&world);
        assert_eq!(keys.len(), 1);
        let topics = ["billing.events", "audit.events"];
        let first = restore(&world, &keys[0], &topics).unwrap();
        assert_eq!(first, Restored { restored: 2, present: 0, replayed: 4 });
        let again = restore(&world, &keys[0], &topics).unwrap();
        assert_eq!(again, Restored { restored: 0, present: 2, replayed: 0 });
        assert_eq!(world.sweep().enqueued, 4);
        let messages = world.take("billing.events");
        assert!(messages.iter().all(|message| message.replay == 1 && message.replay_of.is_some()));
        assert_eq!(world.rows("SELECT actor, action, note FROM ops_log").len(), 2);
        // Touched, so it is not archived again the next night.
        assert_eq!(retain(&world).events, 0);
        days(&world, 15);
        assert_eq!(retain(&world).events, 0, "and not while it is on its way");
    }
}

#[test]
fn everything_comes_back_to_the_byte() {
    let world = World::new(1);
    let megabyte = format!("{{\"n\":1.0,\"s\":\"{}\"}}", "é\\u00e9".repeat(130_000));
    deliver(&world, "acme", "exact", EXACT);
    deliver(&world, "acme", "megabyte", &megabyte);
    deliver(&world, "acme", "null", "null");
    fail(&world, "acme", "failed", "resolved");
    world.publish(event_of("acme", "nowhere", "other.thing.happened", "[]"));
    let before = snapshot(&world);
    days(&world, 91);
    assert_eq!(retain(&world).events, 5);
    assert!(snapshot(&world).is_empty());
    let key = &parts(&world)[0];
    assert_eq!(restore(&world, key, &[]).unwrap(), Restored { restored: 5, present: 0, replayed: 0 });
    assert_eq!(snapshot(&world), before);
    let row = &world.rows("SELECT payload_ref FROM event_ledger WHERE event_id = 'megabyte'")[0];
    let object = block_on(world.blobs.port().get(row["payload_ref"].as_str().unwrap())).unwrap().unwrap();
    assert_eq!(object, megabyte.into_bytes());
}

#[test]
fn a_restore_that_fails_in_the_middle_goes_on_where_it_stopped() {
    for fault in [Fault::Refused, Fault::AnswerLost] {
        for call in 0..8 {
            let world = World::new(1);
            for id in 0..250 {
                world.accept_one(event_of("acme", &format!("e{id}"), PAID, EXACT));
            }
            settle_all(&world, "delivered");
            let before = snapshot(&world);
            days(&world, 91);
            retain(&world);
            let key = &parts(&world)[0];
            for at in [call, call + 1] {
                world.shard().fail_at(at, fault);
            }
            let first = restore(&world, key, &[]);
            world.shard().heal();
            let second = restore(&world, key, &[]).unwrap();
            assert_eq!(second.restored + second.present, 250);
            if let Ok(first) = first {
                assert_eq!((first.restored, second.restored), (250, 0));
            }
            assert_eq!(snapshot(&world), before, "call {call} {fault:?}");
        }
    }
}

#[test]
fn what_is_no_part_of_the_archive_is_not_restored() {
    let world = World::new(1);
    let put = |key: &str, bytes: &[u8]| block_on(world.blobs.port().put(key, bytes.to_vec())).unwrap();
    put("events/2026-01-01/shard-00/part-1-damaged.ndjson.gz", b"hello");
    put("payloads/x", b"{}");
    let fails = |key: &str| restore(&world, key, &[]).unwrap_err();
    assert!(matches!(
        fails("events/2026-01-01/shard-00/part-1-damaged.ndjson.gz"),
        RestoreError::Damaged { line: 1, .. }
    ));
    assert_eq!(fails("events/2026-01-01/shard-00/part-1-none.ndjson.gz"), RestoreError::NotFound);
    assert!(matches!(fails("payloads/x"), RestoreError::Invalid(_)));
    let restorer = Restorer { ledger: &world.ledger, blobs: &world.blobs };
    assert_eq!(block_on(restorer.list("2026-01-01", "", 10)).unwrap().objects.len(), 1);
    assert!(matches!(block_on(restorer.list("../", "", 10)), Err(RestoreError::Invalid(_))));
}

#[test]
fn old_alerts_and_ended_replays_go_and_what_operators_did_stays() {
    let world = World::new(3);
    let first = world.ledger.shard(0).port();
    let alert = "INSERT INTO alerts (alert_id, sink, body, next_retry_at, created_at, sent_at) VALUES (?1, 'ops', '{}', ?2, ?3, ?4)";
    let now = world.clock.now();
    run(first, alert, vec!["sent".into(), None::<&str>.into(), now.into(), now.into()]);
    run(first, alert, vec!["orphan".into(), now.into(), now.into(), None::<&str>.into()]);
    for (id, status) in [("rep_done", "completed"), ("rep_running", "running")] {
        let sql = "INSERT INTO replays (replay_id, of, filter, status, total, rate_per_second, resume_at, created_by, created_at,
                                        updated_at) VALUES (?1, 'incidents', '{}', ?2, 1, 1, ?3, 'ada', ?3, ?3)";
        run(first, sql, vec![id.into(), status.into(), now.into()]);
        for (_, shard) in world.ledger.shards() {
            let sql = "INSERT INTO replay_progress (replay_id, after_at) VALUES (?1, ?2)";
            run(shard.port(), sql, vec![id.into(), now.into()]);
        }
    }
    run(
        first,
        "INSERT INTO ops_log (op_id, at, actor, action) VALUES ('op', ?1, 'ada', 'triage')",
        vec![now.into()],
    );
    days(&world, 29);
    assert_eq!((retain(&world).alerts, retain(&world).replays), (0, 0));
    days(&world, 2);
    assert_eq!((retain(&world).alerts, retain(&world).replays), (2, 0));
    days(&world, 60);
    assert_eq!(retain(&world).replays, 1);
    assert_eq!(world.rows("SELECT 1 AS n FROM replay_progress").len(), 3);
    assert_eq!(world.rows("SELECT 1 AS n FROM ops_log").len(), 1);
}
