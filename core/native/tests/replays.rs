//! Replays of many: what they move, at which pace, and that their counts are right wherever a runner ends.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use common::operators::{
    count, deliver, everywhere, fail_everything, foreign_incident, incident, incident_of, jobs, op,
    operations, replayer, standing, view,
};
use common::{World, event, event_of, strand};
use futures_util::future::join;
use swarm_domain::incident::{FilterInput, IncidentState, OperationError};
use swarm_domain::limits::{REPLAY_RUNNER_LEASE_MS, SEND_LEASE_MS};
use swarm_domain::ports::Clock;
use swarm_domain::replay::{Job, JobRequest, JobState, Of};
use swarm_domain::states::DispatchState;
use swarm_native::{Fault, block_on};

const HOUR_MS: i64 = 3_600_000;

fn parse(of: Of, filter: &str, all: bool, topics: &[&str], rate: Option<u32>) -> Result<JobRequest, String> {
    let filter: FilterInput = serde_json::from_str(filter).unwrap();
    let topics = (!topics.is_empty()).then(|| topics.iter().map(|topic| (*topic).to_owned()).collect());
    JobRequest::parse(of, filter, all, topics, rate).map_err(|error| error.to_string())
}

fn create(world: &World, of: Of, filter: &str, topics: &[&str], rate: u32) -> Job {
    let request = parse(of, filter, filter == "{}", topics, Some(rate)).unwrap();
    block_on(jobs(world).create(&request, &op(world, &world.token()))).unwrap()
}

fn advance(world: &World, job: &Job, ms: i64) -> Result<Job, OperationError> {
    let token = world.token();
    block_on(replayer(world).advance(&job.replay_id, &token, world.clock.now().plus_ms(ms)))
}

fn counts(job: &Job) -> (JobState, u64, u64, u64) {
    (job.status, job.total, job.moved, job.skipped)
}

/// Incidents of as many tenants, so of every shard.
fn incidents(world: &World, number: usize) {
    for n in 0..number {
        world.publish(event_of(&format!("tenant-{n}"), &format!("e{n:03}"), "billing.invoice.paid", "{}"));
    }
    fail_everything(world, "boom");
    world.clock.advance_ms(1);
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    use Of::{Events, Incidents};
    for (of, filter, all, topics, rate, part) in [
        (Incidents, "{}", false, &[][..], None, "`filter` is empty; say `all: true`"),
        (Events, "{}", false, &["a"][..], None, "`filter` is empty"),
        (Incidents, r#"{"tenant":"acme"}"#, true, &[][..], None, "`all` contradicts"),
        (Incidents, r#"{"tenant":"acme"}"#, false, &["a"][..], None, "`topics` goes with a replay of events"),
        (
            Incidents,
            r#"{"status":["open","resolved"]}"#,
            false,
            &[][..],
            None,
            "`status` names incidents that are resolved",
        ),
        (Incidents, r#"{"status":[]}"#, false, &[][..], None, "`status` is empty"),
        (
            Incidents,
            r#"{"since":"2026-01-02T00:00:00Z","until":"2026-01-01T00:00:00Z"}"#,
            false,
            &[][..],
            None,
            "`since`",
        ),
        (Incidents, r#"{"tenant":"acme"}"#, false, &[][..], Some(0), "`ratePerSecond` must be 1 to 1000"),
        (Incidents, r#"{"tenant":"acme"}"#, false, &[][..], Some(1_001), "`ratePerSecond`"),
        (Events, r#"{"tenant":"acme"}"#, false, &[][..], None, "`topics` must name"),
        (Events, r#"{"tenant":"acme"}"#, false, &["No Topic"][..], None, "`topics` names no topic"),
        (Events, r#"{"error":"x"}"#, false, &["a"][..], None, "`error` goes with a replay of incidents"),
        (
            Events,
            r#"{"status":["open"]}"#,
            false,
            &["a"][..],
            None,
            "`status` goes with a replay of incidents",
        ),
    ] {
        let error = parse(of, filter, all, topics, rate).unwrap_err();
        assert!(error.contains(part), "{filter}: {error}");
    }
    assert!(parse(Incidents, "{}", true, &[], None).is_ok());
}

#[test]
fn many_incidents_are_counted_moved_and_delivered() {
    for shards in [1, 3] {
        let world = World::new(shards);
        incidents(&world, 70);
        foreign_incident(&world);
        let job = create(&world, Of::Incidents, "{}", &[], 20);
        assert_eq!(counts(&job), (JobState::Running, 70, 0, 0));
        assert_eq!(block_on(jobs(&world).running()).unwrap(), [job.replay_id.as_str()]);
        let done = advance(&world, &job, HOUR_MS).unwrap();
        assert_eq!(counts(&done), (JobState::Completed, 70, 70, 0));
        assert_eq!(deliver(&world, "billing.events"), 70);
        assert!(standing(&world).iter().all(|line| line.ends_with("resolved delivered")));
        assert_eq!(
            count(&world, "SELECT count(*) AS n FROM ops_log WHERE action = 'replay' AND actor = 'ops'"),
            70
        );
        assert_eq!(count(&world, "SELECT count(*) AS n FROM ops_log WHERE action = 'replay_many'"), 1);
        assert!(block_on(jobs(&world).running()).unwrap().is_empty());
        let listed = block_on(jobs(&world).list()).unwrap();
        assert_eq!(listed, [done]);
    }
}

#[test]
fn only_what_matches_is_moved() {
    let world = World::new(3);
    incident_of(&world, "acme", "a1", "billing.invoice.paid", "boom");
    world.publish(event("a2", "shop.order.paid"));
    fail_everything(&world, "out of stock");
    let triaged = incident_of(&world, "bolt", "b1", "billing.invoice.paid", "boom");
    block_on(operations(&world).triage(&triaged, &op(&world, "op"))).unwrap();
    for (filter, expected) in [
        (r#"{"tenant":"acme"}"#, 3),
        (r#"{"topic":"billing.events"}"#, 3),
        (r#"{"tenant":"acme","topic":"audit.events"}"#, 1),
        (r#"{"type":"shop.order.paid"}"#, 2),
        (r#"{"error":"STOCK"}"#, 2),
        (r#"{"status":["triaged"]}"#, 1),
        (r#"{"status":["open","triaged"],"error":"boom"}"#, 2),
        (r#"{"since":"2026-01-02T00:00:00Z"}"#, 0),
        (r#"{"until":"2026-01-01T00:00:00.001Z"}"#, 4),
        (r#"{"tenant":"nobody"}"#, 0),
    ] {
        let request = parse(Of::Incidents, filter, false, &[], None).unwrap();
        assert_eq!(
            block_on(jobs(&world).count(&request, &op(&world, "count"))).unwrap(),
            expected,
            "{filter}"
        );
    }
    let job = create(&world, Of::Incidents, r#"{"error":"boom"}"#, &[], 50);
    assert_eq!(counts(&advance(&world, &job, HOUR_MS).unwrap()), (JobState::Completed, 2, 2, 0));
    assert_eq!(
        standing(&world),
        [
            "a1 billing.events retrying enqueued",
            "a2 audit.events open dead_lettered",
            "a2 billing.events open dead_lettered",
            "b1 billing.events retrying enqueued"
        ]
    );
    let nothing = create(&world, Of::Incidents, r#"{"tenant":"nobody"}"#, &[], 50);
    assert_eq!(counts(&nothing), (JobState::Completed, 0, 0, 0));
}

#[test]
fn what_fails_again_during_a_replay_is_not_replayed_again() {
    let world = World::new(1);
    incidents(&world, 30);
    let job = create(&world, Of::Incidents, "{}", &[], 10);
    advance(&world, &job, 1_500).unwrap();
    fail_everything(&world, "again");
    world.publish(event("new", "billing.invoice.paid"));
    fail_everything(&world, "new");
    let done = advance(&world, &job, HOUR_MS).unwrap();
    assert_eq!(counts(&done), (JobState::Completed, 30, 30, 0));
    assert_eq!(count(&world, "SELECT count(*) AS n FROM ops_log WHERE action = 'replay'"), 30);
}

#[test]
fn what_fails_again_and_is_taken_up_is_not_replayed_again_either() {
    let world = World::new(1);
    incidents(&world, 30);
    let job = create(&world, Of::Incidents, "{}", &[], 10);
    let begun = advance(&world, &job, 1_500).unwrap();
    fail_everything(&world, "again");
    // The replay comes to the incidents that are triaged after all that are open.
    everywhere(&world, "UPDATE dlq_incidents SET status = 'triaged' WHERE retry_count = 1");
    let done = advance(&world, &job, HOUR_MS).unwrap();
    assert_eq!(counts(&done), (JobState::Completed, 30, 30, begun.moved));
    assert_eq!(count(&world, "SELECT count(*) AS n FROM ops_log WHERE action = 'replay'"), 30);
}

#[test]
fn what_others_have_moved_meanwhile_counts_as_skipped() {
    let world = World::new(1);
    incidents(&world, 10);
    let first = incident(&world, "e1");
    let job = create(&world, Of::Incidents, "{}", &[], 50);
    block_on(operations(&world).ignore(&first, &op(&world, "op"))).unwrap();
    everywhere(
        &world,
        "UPDATE event_dispatches SET status = 'enqueued', next_retry_at = '2027' WHERE event_id = 'e003'",
    );
    let done = advance(&world, &job, HOUR_MS).unwrap();
    assert_eq!(counts(&done), (JobState::Completed, 11, 9, 2));
    assert_eq!(view(&world, &first).status, IncidentState::Ignored);
}

#[test]
fn the_rate_is_kept_within_a_tenth() {
    for (rate, number, shards) in [(50, 10_000, 1), (1_000, 10_000, 1), (7, 300, 1), (50, 500, 3)] {
        let world = World::new(shards);
        if shards == 1 {
            strand(&world, "billing.events", number);
            fail_everything(&world, "boom");
        } else {
            incidents(&world, number);
        }
        world.clock.advance_ms(1);
        let job = create(&world, Of::Incidents, "{}", &[], rate);
        let began = world.clock.now().unix_ms();
        // As cron runs it, one run after the other.
        let mut runs = 0;
        let mut last = job.clone();
        while !last.has_ended() {
            last = advance(&world, &job, 58_000).unwrap();
            runs += 1;
        }
        let seconds = (world.clock.now().unix_ms() - began) as f64 / 1_000.0;
        assert_eq!(counts(&last), (JobState::Completed, number as u64, number as u64, 0));
        let measured = number as f64 / seconds;
        println!("{number} incidents at {rate}/s: {measured:.2}/s in {runs} runs, {seconds:.1} s");
        assert!((measured / f64::from(rate) - 1.0).abs() < 0.1, "{measured} instead of {rate}");
        assert_eq!(world.waiting("billing.events"), number);
    }
}

#[test]
fn a_step_makes_four_calls() {
    let world = World::new(3);
    incidents(&world, 300);
    let job = create(&world, Of::Incidents, "{}", &[], 1_000);
    let calls =
        || world.ledger.shards().map(|(_, shard)| shard.calls()).sum::<usize>() + world.queues.calls();
    let before = calls();
    advance(&world, &job, HOUR_MS).unwrap();
    // Each shard holds about a hundred, so a step or two that send, and two that find the next state; those only look and move.
    let steps = count(&world, "SELECT steps AS n FROM replay_progress") as usize;
    let sends = world.queues.calls();
    assert!(
        calls() - before <= 4 * steps + 3 + 6,
        "{} calls in {steps} steps with {sends} sends",
        calls() - before
    );
}

#[test]
fn a_replay_is_cancelled_midway() {
    let world = World::new(3);
    incidents(&world, 60);
    let job = create(&world, Of::Incidents, "{}", &[], 10);
    let midway = advance(&world, &job, 2_500).unwrap();
    let moved = midway.moved;
    assert_eq!(counts(&midway), (JobState::Running, 60, moved, 0));
    assert!((20..=40).contains(&moved), "{moved}");
    let cancelled = block_on(jobs(&world).cancel(&job.replay_id, &op(&world, "stop"))).unwrap();
    assert_eq!(counts(&cancelled), (JobState::Cancelled, 60, moved, 0));
    let same = block_on(jobs(&world).cancel(&job.replay_id, &op(&world, "stop"))).unwrap();
    assert_eq!(same, cancelled, "the same operation again");
    let again = block_on(jobs(&world).cancel(&job.replay_id, &op(&world, "stop2")));
    assert_eq!(again, Err(OperationError::Ended(JobState::Cancelled)));
    assert_eq!(counts(&advance(&world, &job, HOUR_MS).unwrap()), (JobState::Cancelled, 60, moved, 0));
    assert_eq!(count(&world, "SELECT count(*) AS n FROM dlq_incidents WHERE status = 'open'"), 60 - moved);
    let unknown = block_on(jobs(&world).cancel("rep_unknown", &op(&world, "stop3")));
    assert_eq!(unknown, Err(OperationError::NotFound("replay")));
}

#[test]
fn a_runner_notices_that_it_was_cancelled() {
    let world = World::new(1);
    incidents(&world, 60);
    let job = create(&world, Of::Incidents, "{}", &[], 10);
    let (jobs, replayer, stop) = (jobs(&world), replayer(&world), op(&world, "stop"));
    let cancel = async {
        while world.queues.calls() < 2 {
            swarm_native::yield_now().await;
        }
        jobs.cancel(&job.replay_id, &stop).await.unwrap()
    };
    let deadline = world.clock.now().plus_ms(HOUR_MS);
    let (ran, _) = block_on(join(replayer.advance(&job.replay_id, "runner", deadline), cancel));
    let ran = ran.unwrap();
    assert_eq!(ran.status, JobState::Cancelled);
    assert!(ran.moved <= 30, "{}", ran.moved);
    assert_eq!(ran.moved, world.waiting("billing.events") as u64);
}

#[test]
fn two_runners_at_once_move_each_incident_once() {
    for shards in [1, 3] {
        let world = World::new(shards);
        incidents(&world, 90);
        let job = create(&world, Of::Incidents, "{}", &[], 10);
        let replayer = replayer(&world);
        let deadline = world.clock.now().plus_ms(HOUR_MS);
        let (one, two) = block_on(join(
            replayer.advance(&job.replay_id, "one", deadline),
            replayer.advance(&job.replay_id, "two", deadline),
        ));
        assert_eq!(counts(&one.unwrap()), (JobState::Completed, 90, 90, 0));
        assert_eq!(counts(&two.unwrap()), (JobState::Completed, 90, 90, 0));
        assert_eq!(world.waiting("billing.events"), 90);
    }
}

#[test]
fn a_runner_that_was_believed_dead_moves_nothing_twice() {
    // The first runner is stopped at every point in turn; when it wakes up, its lease has ended and another runner is done.
    for polls in 1.. {
        let world = World::new(1);
        incidents(&world, 30);
        let job = create(&world, Of::Incidents, "{}", &[], 10);
        let replayer = replayer(&world);
        let mut sleeper =
            pin!(replayer.advance(&job.replay_id, "sleeper", world.clock.now().plus_ms(HOUR_MS)));
        let mut context = Context::from_waker(Waker::noop());
        let finished = (0..polls).any(|_| matches!(sleeper.as_mut().poll(&mut context), Poll::Ready(_)));
        if finished {
            assert!(polls > 20, "{polls}");
            break;
        }
        world.clock.advance_ms(REPLAY_RUNNER_LEASE_MS);
        let other = advance(&world, &job, HOUR_MS).unwrap();
        assert_eq!(counts(&other), (JobState::Completed, 30, 30, 0), "after {polls} polls");
        let late = block_on(sleeper).unwrap();
        assert_eq!(counts(&late), (JobState::Completed, 30, 30, 0), "after {polls} polls");
        world.clock.advance_ms(SEND_LEASE_MS);
        world.sweep();
        deliver(&world, "billing.events");
        assert!(standing(&world).iter().all(|line| line.ends_with("resolved delivered")));
        assert_eq!(count(&world, "SELECT sum(replays) AS n FROM event_dispatches"), 30);
    }
}

#[test]
fn a_runner_that_dies_anywhere_is_taken_over_and_the_count_stays_right() {
    for polls in 0.. {
        let world = World::new(3);
        incidents(&world, 25);
        let job = create(&world, Of::Incidents, "{}", &[], 5);
        let finished = {
            let replayer = replayer(&world);
            let mut run = pin!(replayer.advance(&job.replay_id, "dead", world.clock.now().plus_ms(HOUR_MS)));
            let mut context = Context::from_waker(Waker::noop());
            (0..polls).any(|_| matches!(run.as_mut().poll(&mut context), Poll::Ready(_)))
        };
        let moved = count(&world, "SELECT count(*) AS n FROM dlq_incidents WHERE status = 'retrying'");
        assert_eq!(block_on(jobs(&world).view(&job.replay_id)).unwrap().moved, moved, "after {polls} polls");
        let done = advance(&world, &job, HOUR_MS).unwrap();
        assert_eq!(counts(&done), (JobState::Completed, 25, 25, 0), "after {polls} polls");
        world.clock.advance_ms(SEND_LEASE_MS);
        world.sweep();
        deliver(&world, "billing.events");
        assert!(standing(&world).iter().all(|line| line.ends_with("resolved delivered")));
        assert_eq!(count(&world, "SELECT count(*) AS n FROM ops_log WHERE action = 'replay'"), 25);
        if finished {
            break;
        }
    }
}

/// A run in which one call after the other is refused, or its answer lost, once or for ever.
#[test]
fn every_call_may_fail() {
    for fault in [Fault::Refused, Fault::AnswerLost] {
        for times in [1, 2] {
            for call in 0.. {
                let world = World::new(1);
                incidents(&world, 12);
                let job = create(&world, Of::Incidents, "{}", &[], 5);
                let before = world.shard().calls();
                (0..times).for_each(|further| world.shard().fail_at(call + further, fault));
                let answer = advance(&world, &job, HOUR_MS);
                let reached = world.shard().calls() > before + call;
                assert!(
                    times == 2 || answer.is_ok(),
                    "one fault is healed by the second try: {call} {fault:?}"
                );
                world.shard().heal();
                world.clock.advance_ms(REPLAY_RUNNER_LEASE_MS);
                let done = advance(&world, &job, HOUR_MS).unwrap();
                assert_eq!(counts(&done), (JobState::Completed, 12, 12, 0), "{call} {fault:?}");
                world.clock.advance_ms(SEND_LEASE_MS);
                world.sweep();
                deliver(&world, "billing.events");
                assert!(
                    standing(&world).iter().all(|line| line.ends_with("resolved delivered")),
                    "{call} {fault:?}"
                );
                assert_eq!(count(&world, "SELECT sum(replays) AS n FROM event_dispatches"), 12);
                if !reached {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_shard_that_is_down_does_not_hold_up_the_others() {
    let world = World::new(3);
    incidents(&world, 60);
    let job = create(&world, Of::Incidents, "{}", &[], 100);
    world.ledger.shard(1).fail_always(Fault::Refused);
    let token = world.token();
    let deadline = world.clock.now().plus_ms(HOUR_MS);
    let answer = block_on(replayer(&world).advance(&job.replay_id, &token, deadline));
    assert!(matches!(answer, Err(OperationError::Unavailable(_))));
    world.ledger.shard(1).heal();
    let down = count(&world, "SELECT count(*) AS n FROM dlq_incidents WHERE status = 'open'");
    let moved = block_on(jobs(&world).view(&job.replay_id)).unwrap().moved;
    assert!(down > 0 && moved == 60 - down, "{moved} moved, {down} in the shard that is down");
    assert_eq!(counts(&advance(&world, &job, HOUR_MS).unwrap()), (JobState::Completed, 60, 60, 0));
}

#[test]
fn queues_that_refuse_or_do_not_answer_cost_no_event() {
    for fault in [Fault::Refused, Fault::AnswerLost] {
        let world = World::new(1);
        incidents(&world, 12);
        let job = create(&world, Of::Incidents, "{}", &[], 5);
        world.queues.fail_at(0, fault);
        world.queues.fail_at(2, fault);
        let done = advance(&world, &job, HOUR_MS).unwrap();
        assert_eq!(counts(&done), (JobState::Completed, 12, 12, 0));
        world.clock.advance_ms(SEND_LEASE_MS);
        world.sweep();
        deliver(&world, "billing.events");
        assert!(standing(&world).iter().all(|line| line.ends_with("resolved delivered")), "{fault:?}");
    }
}

#[test]
fn creating_runs_again_without_a_second_replay() {
    let world = World::new(1);
    incidents(&world, 3);
    let request = parse(Of::Incidents, "{}", true, &[], None).unwrap();
    for call in 0..2 {
        world.shard().fail_at(call, Fault::AnswerLost);
        block_on(jobs(&world).create(&request, &op(&world, "create"))).unwrap();
    }
    assert_eq!(block_on(jobs(&world).list()).unwrap().len(), 1);
    assert_eq!(count(&world, "SELECT count(*) AS n FROM ops_log"), 1);
    let unknown = block_on(replayer(&world).advance("rep_unknown", "runner", world.clock.now()));
    assert_eq!(unknown, Err(OperationError::NotFound("replay")));
}

#[test]
fn delivered_events_go_to_the_topics_that_are_named() {
    for shards in [1, 3] {
        let world = World::new(shards);
        for n in 0..40 {
            world.publish(event_of(
                &format!("tenant-{n}"),
                &format!("e{n:02}"),
                "billing.invoice.paid",
                "{\"n\":1.0}",
            ));
        }
        deliver(&world, "billing.events");
        world.publish(event("on-its-way", "billing.invoice.paid"));
        world.clock.advance_ms(1);
        // billing.events had them; audit.events never did.
        let topics = ["billing.events", "audit.events"];
        let job = create(&world, Of::Events, r#"{"type":"billing.invoice.paid"}"#, &topics, 20);
        assert_eq!(counts(&job), (JobState::Running, 82, 0, 0));
        let done = advance(&world, &job, HOUR_MS).unwrap();
        assert_eq!(counts(&done), (JobState::Completed, 82, 81, 1), "one is on its way already");
        let messages = world.take("audit.events");
        assert_eq!(messages.len(), 41);
        assert!(messages.iter().all(|message| message.replay == 1));
        assert!(messages.iter().all(|message| message.replay_of.as_deref() == Some(job.replay_id.as_str())));
        assert_eq!(world.waiting("billing.events"), 41);
        assert_eq!(deliver(&world, "billing.events"), 41);
        assert_eq!(
            count(
                &world,
                "SELECT count(*) AS n FROM event_dispatches WHERE status = 'delivered' AND replays = 1"
            ),
            40
        );
    }
}

#[test]
fn an_event_whose_incident_is_open_takes_it_along() {
    let world = World::new(1);
    let open = incident(&world, "open");
    let ignored = incident(&world, "ignored");
    block_on(operations(&world).ignore(&ignored, &op(&world, "op"))).unwrap();
    world.publish(event("fine", "billing.invoice.paid"));
    deliver(&world, "billing.events");
    world.clock.advance_ms(1);
    let job =
        create(&world, Of::Events, r#"{"tenant":"acme","topic":"billing.events"}"#, &["billing.events"], 50);
    assert_eq!(counts(&advance(&world, &job, HOUR_MS).unwrap()), (JobState::Completed, 3, 3, 0));
    assert_eq!(
        standing(&world),
        ["ignored billing.events ignored enqueued", "open billing.events retrying enqueued"]
    );
    let log = block_on(operations(&world).view(&open)).unwrap().log;
    assert_eq!(log[0].replay_id.as_deref(), Some(job.replay_id.as_str()));
    deliver(&world, "billing.events");
    // Both are resolved, so nobody can take up what was handled after all.
    assert_eq!(view(&world, &open).status, IncidentState::Resolved);
    assert_eq!(view(&world, &ignored).status, IncidentState::Resolved);
    let refused = block_on(operations(&world).triage(&ignored, &op(&world, "op2"))).unwrap_err();
    assert!(matches!(refused, OperationError::Illegal { .. }), "{refused:?}");
}

#[test]
fn events_are_filtered() {
    let world = World::new(3);
    for (n, (tenant, event_type)) in
        [("acme", "billing.invoice.paid"), ("acme", "shop.order.paid"), ("bolt", "shop.order.paid")]
            .iter()
            .enumerate()
    {
        world.publish(event_of(tenant, &format!("e{n}"), event_type, "{}"));
        world.clock.advance_ms(1_000);
    }
    for (filter, expected) in [
        (r#"{"tenant":"acme"}"#, 2),
        (r#"{"tenant":"nobody"}"#, 0),
        (r#"{"tenant":"acme","event":"e1"}"#, 1),
        (r#"{"tenant":"bolt","event":"e1"}"#, 0),
        (r#"{"type":"shop.order.paid"}"#, 2),
        (r#"{"topic":"audit.events"}"#, 2),
        (r#"{"topic":"audit.events","tenant":"bolt"}"#, 1),
        (r#"{"since":"2026-01-01T00:00:01Z"}"#, 2),
        (r#"{"until":"2026-01-01T00:00:01Z"}"#, 1),
        (r#"{"since":"2026-01-01T00:00:01Z","until":"2026-01-01T00:00:02Z"}"#, 1),
    ] {
        let request = parse(Of::Events, filter, false, &["billing.events"], None).unwrap();
        assert_eq!(
            block_on(jobs(&world).count(&request, &op(&world, "count"))).unwrap(),
            expected,
            "{filter}"
        );
    }
}

#[test]
fn events_survive_every_crash_as_well() {
    for polls in 0.. {
        let world = World::new(3);
        for n in 0..9 {
            world.publish(event_of(&format!("tenant-{n}"), &format!("e{n}"), "billing.invoice.paid", "{}"));
        }
        deliver(&world, "billing.events");
        world.clock.advance_ms(1);
        let job = create(
            &world,
            Of::Events,
            r#"{"since":"2026-01-01T00:00:00Z"}"#,
            &["billing.events", "audit.events"],
            4,
        );
        let finished = {
            let replayer = replayer(&world);
            let mut run = pin!(replayer.advance(&job.replay_id, "dead", world.clock.now().plus_ms(HOUR_MS)));
            let mut context = Context::from_waker(Waker::noop());
            (0..polls).any(|_| matches!(run.as_mut().poll(&mut context), Poll::Ready(_)))
        };
        let done = advance(&world, &job, HOUR_MS).unwrap();
        assert_eq!(counts(&done), (JobState::Completed, 18, 18, 0), "after {polls} polls");
        world.clock.advance_ms(SEND_LEASE_MS);
        world.sweep();
        deliver(&world, "billing.events");
        deliver(&world, "audit.events");
        assert_eq!(
            count(
                &world,
                "SELECT count(*) AS n FROM event_dispatches WHERE status = 'delivered' AND replays = 1"
            ),
            18
        );
        if finished {
            break;
        }
    }
}

#[test]
fn only_dispatches_at_rest_are_replayed() {
    for state in DispatchState::ALL {
        let world = World::new(1);
        world.publish(event("e1", "billing.invoice.paid"));
        world.take("billing.events");
        let next = if state.is_live() { "'2027-01-01 00:00:00.000'" } else { "NULL" };
        let sql = format!("UPDATE event_dispatches SET status = '{}', next_retry_at = {next}", state.name());
        everywhere(&world, sql.leak());
        world.clock.advance_ms(1);
        let job = create(&world, Of::Events, r#"{"tenant":"acme"}"#, &["billing.events"], 50);
        let done = advance(&world, &job, HOUR_MS).unwrap();
        assert_eq!(done.moved, u64::from(!state.is_live()), "{state:?}");
        assert_eq!(world.waiting("billing.events") as u64, done.moved);
    }
}
