//! Dead letters on SQLite: each becomes one incident and leaves its queue only then, whoever put it there, however often it
//! comes, and whatever it is.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{MINUTE_MS, World, event, event_of, run};
use serde_json::Value as Json;
use swarm_domain::archive::{Archiver, Filed, Filing, Letter};
use swarm_domain::inbox::{Disposition, RawBody};
use swarm_domain::lease::{Outcome, settle, take};
use swarm_domain::limits::{ARCHIVE_DEADLINE_MS, PAYLOAD_INLINE_BYTES_MAX, QUEUE_MESSAGE_BYTES_MAX};
use swarm_domain::message::{DeadLetter, Message};
use swarm_domain::ports::{Blobs, Clock};
use swarm_native::{Fault, block_on};

const PAID: &str = "billing.invoice.paid";
const TOPIC: &str = "billing.events";
const QUEUE: &str = "billing-events-dlq";
const MESSAGE_BYTES_MAX: usize = QUEUE_MESSAGE_BYTES_MAX;

/// A world with one event, and its message.
fn world() -> (World, Message) {
    let world = World::new(1);
    world.publish(event("e1", PAID));
    let message = world.take(TOPIC).remove(0);
    (world, message)
}

fn text(text: impl Into<String>) -> Letter {
    Letter { body: RawBody::Text(text.into()), attempts: 1 }
}

/// As the platform moves a message by itself.
fn bare(message: &Message) -> Letter {
    text(message.encode().unwrap())
}

/// As the kit gives a message up.
fn letter(message: &Message, error: &str) -> Letter {
    let letter = DeadLetter {
        v: DeadLetter::VERSION,
        source_queue: "billing-events".to_owned(),
        attempts: 6,
        error: error.to_owned(),
        stack: Some(format!("at {error}.rs")),
        failed_at: "2026-01-01T00:00:00.000Z".to_owned(),
        message: message.encode().unwrap(),
    };
    text(serde_json::to_string(&letter).unwrap())
}

async fn archive(world: &World, letters: Vec<Letter>) -> Vec<Filed> {
    let archiver = Archiver { ledger: &world.ledger, blobs: &world.blobs };
    archiver.archive(QUEUE, letters, world.clock.now()).await
}

/// What is told of each letter: its end and whether the queue may forget it.
fn told(filed: &[Filed]) -> Vec<&'static str> {
    let told = |filed: &Filed| match (&filed.filing, filed.disposition) {
        (Filing::Reported(_), Disposition::Ack) => "reported",
        (Filing::Void(_), Disposition::Ack) => "void",
        (Filing::Foreign { .. }, Disposition::Ack) => "foreign",
        (Filing::Failed(_), Disposition::Retry { delay_seconds: 15 }) => "kept",
        other => panic!("{other:?}"),
    };
    filed.iter().map(told).collect()
}

fn archived(world: &World, letters: Vec<Letter>) -> Vec<&'static str> {
    told(&block_on(archive(world, letters)))
}

/// A run that leases the message and gives it up, as far as the ledger knows.
fn give_up(world: &World, message: &Message, error: &str) {
    let (generation, now) = (message.generation(), world.clock.now());
    let shard = world.ledger.shard(world.ledger.shard_of(&generation.key.tenant_id));
    block_on(async {
        take(shard, std::slice::from_ref(&generation), "run", now).await.unwrap();
        let outcome = Outcome::DeadLettered(error.to_owned());
        settle(shard, vec![(generation, outcome)], "run", now).await.unwrap();
    });
}

fn dispatch(world: &World) -> Json {
    world.rows("SELECT * FROM event_dispatches").remove(0)
}

/// Lines such as `open 0: no card`: status, how often it failed again, and why.
fn incidents(world: &World) -> Vec<String> {
    let sql = "SELECT status || ' ' || retry_count || ': ' || error_message AS line FROM dlq_incidents ORDER BY seq";
    world.rows(sql).iter().map(|row| row["line"].as_str().unwrap().to_owned()).collect()
}

fn assert_laid_to_rest(world: &World, error: &str) {
    let row = dispatch(world);
    assert_eq!((&row["status"], &row["last_error"]), (&"dead_lettered".into(), &error.into()));
    for column in ["next_retry_at", "claimed_by", "lease", "lease_holder"] {
        assert!(row[column].is_null(), "{column}");
    }
    assert_eq!(row["starts"], 0);
}

#[test]
fn a_letter_becomes_an_incident_with_all_that_is_known() {
    let world = World::new(1);
    world.publish(event_of("acme", "e1", PAID, "{ \"n\": 1.0 }"));
    let message = world.take(TOPIC).remove(0);
    give_up(&world, &message, "no card");
    assert_eq!(archived(&world, vec![letter(&message, "no card")]), ["reported"]);
    assert_laid_to_rest(&world, "no card");
    let row = world.rows("SELECT * FROM dlq_incidents").remove(0);
    for (column, value) in [
        ("kind", "dead_letter"),
        ("tenant_id", "acme"),
        ("event_id", "e1"),
        ("topic", TOPIC),
        ("type", PAID),
        ("source_queue", "billing-events"),
        ("error_message", "no card"),
        ("error_stack", "at no card.rs"),
        ("payload", "{ \"n\": 1.0 }"),
        ("status", "open"),
    ] {
        assert_eq!(row[column], value, "{column}");
    }
    assert_eq!(row["alert_at"], row["created_at"]);
}

#[test]
fn the_same_letter_again_changes_nothing_and_costs_one_round_trip() {
    let (world, message) = world();
    let letters = || vec![letter(&message, "no"), bare(&message), letter(&message, "other words")];
    let calls = world.shard().calls();
    assert_eq!(archived(&world, letters()), ["reported"; 3]);
    assert_eq!(world.shard().calls(), calls + 1);
    let before = (dispatch(&world), world.rows("SELECT * FROM dlq_incidents"));
    assert_eq!(before.1.len(), 1);
    world.clock.advance_ms(MINUTE_MS);
    assert_eq!(archived(&world, letters()), ["reported"; 3]);
    assert_eq!((dispatch(&world), world.rows("SELECT * FROM dlq_incidents")), before);
}

#[test]
fn the_letter_may_come_before_the_mark_or_without_it() {
    let (world, message) = world();
    let (generation, now) = (message.generation(), world.clock.now());
    block_on(take(world.shard(), std::slice::from_ref(&generation), "run", now)).unwrap();
    assert_eq!(archived(&world, vec![letter(&message, "no card")]), ["reported"]);
    assert_laid_to_rest(&world, "no card");
    let before = dispatch(&world);
    let late = vec![(generation, Outcome::DeadLettered("no card".to_owned()))];
    block_on(settle(world.shard(), late, "run", now)).unwrap();
    assert_eq!(dispatch(&world), before);
    world.clock.advance_ms(ARCHIVE_DEADLINE_MS);
    assert_eq!(world.sweep().enqueued, 0);
    assert_eq!(incidents(&world), ["open 0: no card"]);
}

#[test]
fn what_the_platform_moved_tells_the_last_error_of_the_ledger() {
    for error in [Some("busy"), None] {
        let (world, message) = world();
        if let Some(error) = error {
            let (generation, now) = (message.generation(), world.clock.now());
            block_on(async {
                take(world.shard(), std::slice::from_ref(&generation), "run", now).await.unwrap();
                let outcomes =
                    vec![(generation, Outcome::Released { error: error.to_owned(), handled: true })];
                settle(world.shard(), outcomes, "run", now).await.unwrap();
            });
        }
        assert_eq!(archived(&world, vec![bare(&message)]), ["reported"]);
        let told = error.unwrap_or("no error was recorded");
        assert_eq!(incidents(&world), [format!("open 0: {told}")]);
        assert_eq!(dispatch(&world)["last_error"].as_str(), error);
        assert_eq!(world.rows("SELECT source_queue AS q FROM dlq_incidents")[0]["q"], "billing-events");
    }
}

#[test]
fn a_letter_of_an_earlier_generation_says_nothing_any_more() {
    let (world, message) = world();
    world.repeat("e1", TOPIC);
    let before = dispatch(&world);
    assert_eq!(archived(&world, vec![letter(&message, "no"), bare(&message)]), ["void"; 2]);
    assert_eq!((dispatch(&world), incidents(&world).len()), (before, 0));
}

#[test]
fn a_letter_of_what_was_delivered_says_nothing_any_more() {
    let (world, message) = world();
    let (generation, now) = (message.generation(), world.clock.now());
    block_on(async {
        take(world.shard(), std::slice::from_ref(&generation), "run", now).await.unwrap();
        let outcomes = vec![(generation, Outcome::Delivered(Vec::new()))];
        settle(world.shard(), outcomes, "run", now).await.unwrap();
    });
    assert_eq!(archived(&world, vec![letter(&message, "no")]), ["void"]);
    assert_eq!(
        (world.dispatches(), incidents(&world).len()),
        (vec!["e1 billing.events delivered".into()], 0)
    );
}

#[test]
fn a_repetition_that_fails_opens_the_same_incident_again() {
    let (world, first) = world();
    archived(&world, vec![letter(&first, "no card")]);
    let sql = "UPDATE dlq_incidents SET status = 'retrying', alert_at = NULL, resolved_by = 'ada'";
    run(world.shard().port(), sql, Vec::new());
    world.repeat("e1", TOPIC);
    let second = Message { replay: 1, ..first.clone() };
    give_up(&world, &second, "still no card");
    world.clock.advance_ms(MINUTE_MS);
    let letters = || vec![letter(&second, "still no card"), letter(&first, "no card")];
    assert_eq!(archived(&world, letters()), ["reported", "void"]);
    assert_eq!(archived(&world, letters()), ["reported", "void"]);
    assert_eq!(incidents(&world), ["open 1: still no card"]);
    let row = world.rows("SELECT * FROM dlq_incidents").remove(0);
    assert_eq!((&row["generation"], &row["alert_at"]), (&1.into(), &world.clock.now().to_string().into()));
    assert!(row["resolved_by"].is_null());
    assert_laid_to_rest(&world, "still no card");
}

#[test]
fn a_lost_answer_makes_no_second_incident() {
    let (world, message) = world();
    world.shard().fail_at(0, Fault::AnswerLost);
    assert_eq!(archived(&world, vec![letter(&message, "no"), text("hello")]), ["reported", "foreign"]);
    for calls_ahead in 0..2 {
        world.shard().fail_at(calls_ahead, Fault::AnswerLost);
    }
    assert_eq!(archived(&world, vec![letter(&message, "no")]), ["kept"]);
    assert_eq!(archived(&world, vec![letter(&message, "no"), text("hello")]), ["reported", "foreign"]);
    assert_eq!(incidents(&world).len(), 2);
}

#[test]
fn a_letter_stays_in_its_queue_until_the_ledger_has_it() {
    let (world, message) = world();
    world.shard().fail_always(Fault::Refused);
    assert_eq!(archived(&world, vec![letter(&message, "no"), text("hello")]), ["kept"; 2]);
    world.shard().heal();
    assert_eq!(incidents(&world).len(), 0);
    assert_eq!(archived(&world, vec![letter(&message, "no"), text("hello")]), ["reported", "foreign"]);
}

#[test]
fn a_shard_that_is_down_keeps_its_own_letters_and_no_others() {
    let world = World::new(3);
    for number in 0..9 {
        world.publish(event_of(&format!("tenant-{number}"), &format!("e{number}"), PAID, "{}"));
    }
    let messages = world.take(TOPIC);
    world.ledger.shard(1).fail_always(Fault::Refused);
    let filed = block_on(archive(&world, messages.iter().map(|message| letter(message, "no")).collect()));
    for (message, filed) in messages.iter().zip(&filed) {
        let down = world.ledger.shard_of(&message.envelope.tenant_id) == 1;
        assert_eq!(matches!(filed.filing, Filing::Failed(_)), down, "{filed:?}");
    }
    assert!(told(&filed).contains(&"kept") && told(&filed).contains(&"reported"));
    let homes = |(shard, ledger): (usize, &common::Shard)| {
        let rows = common::rows(ledger.port(), "SELECT tenant_id AS t FROM dlq_incidents");
        rows.iter().all(|row| world.ledger.shard_of(row["t"].as_str().unwrap()) == shard)
    };
    assert!(world.ledger.shards().all(homes));
}

#[test]
fn what_is_not_ours_is_kept_to_the_byte() {
    let (world, message) = world();
    let ours = message.encode().unwrap();
    let long = format!("\"{}\"", "é\u{0}".repeat(PAYLOAD_INLINE_BYTES_MAX / 3));
    let bodies = [
        RawBody::Text("hello \u{0} \u{1F600}".to_owned()),
        RawBody::Text(String::new()),
        RawBody::Text("{\"order\":12345678901234567890}".to_owned()),
        RawBody::Text(ours.replacen("\"v\":1", "\"v\":7", 1)),
        RawBody::Text(ours.replacen("\"tenantId\"", "\"tenant\"", 1)),
        RawBody::Text(ours.replacen("\"e1\"", "\"e9\"", 1)),
        RawBody::Text(ours.replacen("billing.events", "audit.events", 1)),
        RawBody::Text("\u{1}".repeat(PAYLOAD_INLINE_BYTES_MAX)),
        RawBody::Text(long),
        RawBody::Text("x".repeat(MESSAGE_BYTES_MAX)),
        RawBody::from_bytes(vec![0, 159, 146, 150]),
        RawBody::from_bytes((0..MESSAGE_BYTES_MAX).map(|n| (n % 256) as u8).collect()),
    ];
    let letters = || bodies.iter().map(|body| Letter { body: body.clone(), attempts: 1 }).collect();
    assert_eq!(archived(&world, letters()), vec!["foreign"; bodies.len()]);
    world.clock.advance_ms(MINUTE_MS);
    assert_eq!(archived(&world, letters()), vec!["foreign"; bodies.len()]);

    let rows = world.rows("SELECT * FROM dlq_incidents ORDER BY seq");
    assert_eq!(rows.len(), bodies.len());
    for body in &bodies {
        let kept = |row: &&Json| match (row["payload"].as_str(), row["payload_ref"].as_str()) {
            (Some(text), None) => text.as_bytes() == body.as_bytes(),
            (None, Some(key)) => {
                let bytes = block_on(world.blobs.port().get(key)).unwrap().unwrap();
                bytes == body.as_bytes()
            }
            other => panic!("{other:?}"),
        };
        let row = rows.iter().find(kept).unwrap();
        assert_eq!(
            (&row["kind"], &row["tenant_id"], &row["type"]),
            (&"foreign".into(), &"".into(), &().into())
        );
        assert_eq!((&row["source_queue"], &row["status"]), (&"billing-events".into(), &"open".into()));
        assert!(!row["error_message"].as_str().unwrap().is_empty());
    }
    assert!(
        rows.iter().any(|row| row["error_message"].as_str().unwrap().contains("does not know the event"))
    );
    assert_eq!(world.blobs.port().keys().len(), 4, "one object each");
    assert_eq!(world.dispatches(), ["e1 billing.events enqueued"], "a stray copy touches no dispatch");
}

#[test]
fn what_is_not_ours_goes_to_the_first_shard_and_its_body_before_it() {
    let world = World::new(3);
    let large = || Letter { body: RawBody::from_bytes(vec![0xff; 3]), attempts: 1 };
    world.blobs.fail_at(0, Fault::Refused);
    assert_eq!(archived(&world, vec![large(), text("hello")]), ["kept", "foreign"]);
    assert_eq!(incidents(&world).len(), 1);
    world.blobs.fail_at(0, Fault::AnswerLost);
    assert_eq!(archived(&world, vec![large()]), ["kept"], "whether it is stored nobody knows");
    assert_eq!(archived(&world, vec![large()]), ["foreign"]);
    assert_eq!(common::rows(world.ledger.shard(0).port(), "SELECT seq FROM dlq_incidents").len(), 2);
}

#[test]
fn one_letter_that_the_database_refuses_holds_up_no_other() {
    let world = World::new(1);
    for number in 0..5 {
        world.publish(event(&format!("e{number}"), PAID));
    }
    let sql =
        "CREATE TRIGGER refuse BEFORE INSERT ON dlq_incidents WHEN NEW.event_id = 'e3' OR NEW.payload = 'bad'
               BEGIN SELECT RAISE(ABORT, 'refused by a test'); END";
    run(world.shard().port(), sql, Vec::new());
    let mut letters: Vec<_> = world.take(TOPIC).iter().map(|message| letter(message, "no")).collect();
    letters.extend(["good", "bad", "better"].map(text));
    let expected = ["reported", "reported", "reported", "kept", "reported", "foreign", "kept", "foreign"];
    assert_eq!(archived(&world, letters), expected);
    assert_eq!(incidents(&world).len(), 6);
}

#[test]
fn a_full_batch_of_the_longest_letters_fits_into_the_database() {
    let world = World::new(1);
    for number in 0..100 {
        world.publish(event(&format!("e{number}"), PAID));
    }
    let error = "\u{1}".repeat(100_000);
    let letters = world.take(TOPIC).iter().map(|message| letter(message, &error)).collect();
    assert_eq!(archived(&world, letters), ["reported"; 100]);
    let foreign = (0..100).map(|n| text(format!("{n:03}{}", "\u{1}".repeat(PAYLOAD_INLINE_BYTES_MAX - 3))));
    assert_eq!(archived(&world, foreign.collect()), ["foreign"; 100]);
    assert_eq!(incidents(&world).len(), 200);
}

#[test]
fn letters_wait_ever_longer() {
    let (world, message) = world();
    world.shard().fail_always(Fault::Refused);
    let mut late = letter(&message, "no");
    late.attempts = 100;
    let filed = block_on(archive(&world, vec![late]));
    assert_eq!(filed[0].disposition, Disposition::Retry { delay_seconds: 10_800 });
}
