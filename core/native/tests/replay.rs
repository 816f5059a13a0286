//! Replays of single incidents: one batch, the ordinary send, and every call refused, unanswered or never come to.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use common::operators::{
    count, deliver, everywhere, fail_everything, foreign_incident, incident, incident_of, op, operations,
    replayer, standing, view,
};
use common::{World, topic};
use futures_util::future::join;
use swarm_domain::incident::{IncidentEvent, IncidentState, NotReplayable, OperationError};
use swarm_domain::limits::SEND_LEASE_MS;
use swarm_domain::states::DispatchState;
use swarm_native::{Fault, block_on};

fn replay(world: &World, id: &str, op_id: &str) -> Result<IncidentState, OperationError> {
    block_on(replayer(world).replay_one(id, &op(world, op_id))).map(|replayed| replayed.incident.status)
}

#[test]
fn an_incident_is_replayed_delivered_and_closed() {
    for shards in [1, 3] {
        let world = World::new(shards);
        let id = incident(&world, "e1");
        let replayed = block_on(replayer(&world).replay_one(&id, &op(&world, "op1"))).unwrap();
        assert_eq!((replayed.incident.status, replayed.unrecorded), (IncidentState::Retrying, None));
        assert_eq!(replayed.incident.resolved_by, None, "it is not closed yet");
        assert_eq!(standing(&world), ["e1 billing.events retrying enqueued"]);
        let messages = world.take("billing.events");
        assert_eq!((messages[0].replay, messages[0].attempt), (1, 1));
        assert_eq!(messages[0].replay_of.as_deref(), Some(id.as_str()));

        // It fails again, is looked into, and the second replay arrives.
        world.clock.advance_ms(1);
        fail_everything(&world, "still broken");
        let again = view(&world, &id);
        assert_eq!((again.status, again.retry_count), (IncidentState::Open, 1));
        block_on(operations(&world).triage(&id, &op(&world, "op2"))).unwrap();
        assert_eq!(replay(&world, &id, "op3"), Ok(IncidentState::Retrying));
        assert_eq!(deliver(&world, "billing.events"), 1);
        assert_eq!(standing(&world), ["e1 billing.events resolved delivered"]);
        let resolved = view(&world, &id);
        assert_eq!((resolved.resolved_by.as_deref(), resolved.retry_count), (Some("ops"), 1));
        let log = block_on(operations(&world).view(&id)).unwrap().log;
        assert_eq!(
            log.iter().map(|entry| entry.action.as_str()).collect::<Vec<_>>(),
            ["replay", "triage", "replay"]
        );
    }
}

#[test]
fn from_every_state() {
    for from in IncidentState::ALL {
        let world = World::new(1);
        let id = incident(&world, "e1");
        everywhere(&world, format!("UPDATE dlq_incidents SET status = '{}'", from.name()).leak());
        let expected = from.after(IncidentEvent::Replay);
        let expected = expected.map_err(|_| OperationError::Illegal { from, event: IncidentEvent::Replay });
        assert_eq!(replay(&world, &id, "op"), expected);
        assert_eq!(world.waiting("billing.events"), usize::from(expected.is_ok()), "{from:?}");
    }
}

#[test]
fn what_has_nothing_to_send_is_refused_with_the_reason() {
    let world = World::new(1);
    let foreign = foreign_incident(&world);
    assert_eq!(replay(&world, &foreign, "op1"), Err(OperationError::NotReplayable(NotReplayable::Foreign)));
    let id = incident(&world, "e1");
    for (state, reason) in [
        (DispatchState::Enqueued, NotReplayable::OnItsWay(DispatchState::Enqueued)),
        (DispatchState::Pending, NotReplayable::OnItsWay(DispatchState::Pending)),
    ] {
        let sql = format!("UPDATE event_dispatches SET status = '{}', next_retry_at = '2026'", state.name());
        everywhere(&world, sql.leak());
        assert_eq!(replay(&world, &id, "op2"), Err(OperationError::NotReplayable(reason)));
    }
    everywhere(&world, "DELETE FROM event_dispatches");
    assert_eq!(replay(&world, &id, "op3"), Err(OperationError::NotReplayable(NotReplayable::Gone)));
    assert_eq!(replay(&world, "inc_unknown", "op4"), Err(OperationError::NotFound("incident")));
    assert_eq!(count(&world, "SELECT count(*) AS n FROM ops_log"), 0);
    assert_eq!(view(&world, &id).status, IncidentState::Open);
}

#[test]
fn of_two_operators_at_once_one_wins() {
    for shards in [1, 3] {
        let world = World::new(shards);
        let id = incident(&world, "e1");
        let replayer = replayer(&world);
        let (one, two) = (op(&world, "op1"), op(&world, "op2"));
        let (one, two) = block_on(join(replayer.replay_one(&id, &one), replayer.replay_one(&id, &two)));
        assert!(one.is_ok() != two.is_ok());
        let lost = if one.is_ok() { two } else { one };
        let (from, event) = (IncidentState::Retrying, IncidentEvent::Replay);
        assert_eq!(lost.unwrap_err(), OperationError::Illegal { from, event });
        assert_eq!(world.waiting("billing.events"), 1);
        assert_eq!(count(&world, "SELECT replays AS n FROM event_dispatches"), 1);
        assert_eq!(count(&world, "SELECT count(*) AS n FROM ops_log"), 1);
    }
}

/// Calls to the ledger: find, move, settle.
#[test]
fn every_call_to_the_ledger_may_fail_once() {
    for call in 0..3 {
        for fault in [Fault::Refused, Fault::AnswerLost] {
            let world = World::new(1);
            let id = incident(&world, "e1");
            world.shard().fail_at(call, fault);
            assert_eq!(replay(&world, &id, "op"), Ok(IncidentState::Retrying), "call {call} {fault:?}");
            assert_eq!(standing(&world), ["e1 billing.events retrying enqueued"]);
            assert_eq!(world.waiting("billing.events"), 1);
            assert_eq!(count(&world, "SELECT count(*) AS n FROM ops_log"), 1);
        }
    }
}

#[test]
fn a_move_that_nobody_answers_for_is_sent_by_the_sweeper() {
    for fault in [Fault::Refused, Fault::AnswerLost] {
        let world = World::new(1);
        let id = incident(&world, "e1");
        for call in 1..3 {
            world.shard().fail_at(call, fault);
        }
        let answer = replay(&world, &id, "op");
        assert!(matches!(answer, Err(OperationError::Unavailable(_))), "{fault:?}");
        world.clock.advance_ms(SEND_LEASE_MS);
        let sent = world.sweep().enqueued;
        assert_eq!(sent, usize::from(fault == Fault::AnswerLost), "{fault:?}");
        assert_eq!(deliver(&world, "billing.events"), sent);
        let expected = if sent == 1 { IncidentState::Resolved } else { IncidentState::Open };
        assert_eq!(view(&world, &id).status, expected);
    }
}

#[test]
fn a_queue_that_refuses_leaves_the_event_to_the_sweeper() {
    let world = World::new(1);
    let id = incident(&world, "e1");
    world.set_down("billing.events", true);
    assert_eq!(replay(&world, &id, "op"), Ok(IncidentState::Retrying));
    assert_eq!(standing(&world), ["e1 billing.events retrying failed"]);
    world.set_down("billing.events", false);
    world.clock.advance_ms(SEND_LEASE_MS);
    assert_eq!(world.sweep().enqueued, 1);
    assert_eq!(deliver(&world, "billing.events"), 1);
    assert_eq!(standing(&world), ["e1 billing.events resolved delivered"]);
}

#[test]
fn a_crash_at_any_point_loses_nothing_and_repeats_nothing() {
    let mut crashed_after_move = 0;
    for polls in 0.. {
        let world = World::new(3);
        let id = incident(&world, "e1");
        let finished = {
            let (replayer, op) = (replayer(&world), op(&world, "op"));
            let mut replay = pin!(replayer.replay_one(&id, &op));
            let mut context = Context::from_waker(Waker::noop());
            (0..polls).any(|_| matches!(replay.as_mut().poll(&mut context), Poll::Ready(_)))
        };
        let was_moved = view(&world, &id).status == IncidentState::Retrying;
        crashed_after_move += usize::from(was_moved && !finished);
        if !was_moved {
            assert_eq!(replay(&world, &id, "again"), Ok(IncidentState::Retrying));
        }
        world.clock.advance_ms(SEND_LEASE_MS);
        world.sweep();
        deliver(&world, "billing.events");
        assert_eq!(standing(&world), ["e1 billing.events resolved delivered"], "after {polls} polls");
        assert_eq!(count(&world, "SELECT count(*) AS n FROM ops_log"), 1);
        assert_eq!(count(&world, "SELECT replays AS n FROM event_dispatches"), 1);
        if finished {
            break;
        }
    }
    assert!(crashed_after_move > 2, "{crashed_after_move}");
}

#[test]
fn a_batch_that_runs_again_much_later_does_not_send_again() {
    let world = World::new(1);
    let id = incident(&world, "e1");
    assert_eq!(replay(&world, &id, "op"), Ok(IncidentState::Retrying));
    deliver(&world, "billing.events");
    let replays = count(&world, "SELECT replays AS n FROM event_dispatches");
    // The same operation, as a client in a network that holds answers back for minutes would repeat it.
    assert_eq!(replay(&world, &id, "op"), Ok(IncidentState::Resolved));
    assert_eq!(world.waiting("billing.events"), 0);
    assert_eq!(count(&world, "SELECT replays AS n FROM event_dispatches"), replays);
}

#[test]
fn a_message_from_before_the_replay_is_void() {
    let world = World::new(1);
    incident_of(&world, "acme", "e1", "billing.invoice.paid", "boom");
    let id = incident(&world, "e2");
    assert_eq!(replay(&world, &id, "op1"), Ok(IncidentState::Retrying));
    let old = world.queues.port().queues.take(&topic("billing.events"));
    fail_everything(&world, "again");
    assert_eq!(replay(&world, &id, "op2"), Ok(IncidentState::Retrying));
    let generations: Vec<u32> = world.take("billing.events").iter().map(|message| message.replay).collect();
    assert_eq!((old.len(), generations), (1, vec![2]));
}
