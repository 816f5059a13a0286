//! Operators: they take incidents up, let them rest, have them sent again, one or many, and change their minds. Two of them
//! may do so at once.

use std::rc::Rc;

use swarm_domain::incident::{FilterInput, Operation, OperationError, Operations};
use swarm_domain::ports::Clock;
use swarm_domain::replay::{JobRequest, Jobs, Of, Replayer};
use swarm_domain::retention::{RestoreError, Restorer};
use swarm_domain::topic::Topic;

use crate::checkers::archive;
use crate::faults::FaultKind;
use crate::plan::MINUTE_MS;
use crate::ports::{SimBlobs, SimClock, SimQueues, ledger};
use crate::process::{Actor, Process};
use crate::world::World;

/// How long one call of `POST /api/v1/replays/{id}/run` works.
const RUN_CALL_MS: i64 = 5_000;
/// How long the cron works on replays of many.
const RUN_CRON_MS: i64 = 50_000;

/// How many incidents count as recent.
const RECENT: usize = 8;

/// What an operator wants.
#[derive(Clone, Debug)]
pub enum Wish {
    /// Take an incident up.
    Triage(String),
    /// Let it rest.
    Ignore(String),
    /// Have it sent again.
    Replay(String),
    /// Have many sent again.
    ReplayMany(Of, FilterInput, bool, Option<Vec<String>>, u32),
    /// Stop a replay of many.
    Cancel(String),
    /// Work on a replay of many.
    Run(String),
    /// Read a part of the archive back, and send its events to topics.
    Restore(String, Vec<Topic>),
}

/// Operators at work for as long as the storm lasts.
pub async fn shift(world: Rc<World>, until_ms: i64) {
    while world.executor.now_ms() < until_ms {
        let wait_ms = world.dice.between(MINUTE_MS / 2, 6 * MINUTE_MS);
        world.executor.sleep_ms(wait_ms).await;
        let Some(wish) = wish(&world) else { continue };
        let twice = world.dice.chance(0.25);
        for _ in 0..=usize::from(twice) {
            start(&world, wish.clone());
        }
    }
}

/// The cron that works replays of many off, every minute.
pub async fn replay_cron(world: Rc<World>) {
    loop {
        world.wait_for_cron(MINUTE_MS).await;
        if world.faults.strikes(|weather| weather.cron_missed, FaultKind::CronMissed) {
            continue;
        }
        let process = Process::new(&world, Actor::ReplayRunner);
        process.spawn(run_all(Rc::clone(&process)));
        if world.faults.strikes(|weather| weather.cron_doubled, FaultKind::CronDoubled) {
            let second = Process::new(&world, Actor::ReplayRunner);
            second.spawn(run_all(Rc::clone(&second)));
        }
    }
}

async fn run_all(process: Rc<Process>) {
    let ledger = ledger(&process);
    let jobs = Jobs { ledger: &ledger };
    let Ok(running) = jobs.running().await else { return };
    for replay_id in running {
        run(&process, &replay_id, RUN_CRON_MS).await;
    }
}

async fn run(process: &Rc<Process>, replay_id: &str, ms: i64) {
    let (ledger, queues, clock) =
        (ledger(process), SimQueues(Rc::clone(process)), SimClock(Rc::clone(process)));
    let in_transit_deadline_ms = process.world.plan.in_transit_deadline_ms;
    let replayer = Replayer { ledger: &ledger, queues: &queues, clock: &clock, in_transit_deadline_ms };
    let deadline = clock.now().plus_ms(ms);
    let answer = replayer.advance(replay_id, &process.token(), deadline).await;
    process.note(None, || format!("ran {replay_id}: {answer:?}"));
}

/// Something to do, if there is anything.
fn wish(world: &World) -> Option<Wish> {
    let dice = &world.dice;
    match dice.below(20) {
        0 => Some(replay_many(world)),
        1 => dice.pick(&world.replays.borrow()).cloned().map(Wish::Cancel),
        2 => dice.pick(&world.replays.borrow()).cloned().map(Wish::Run),
        3 => restore(world),
        draw => {
            let witness = world.witness.borrow();
            // What has just failed is looked at more often than what is old.
            let order = &witness.incident_order;
            let recent = &order[order.len().saturating_sub(RECENT)..];
            let incident = dice.pick(if dice.chance(0.6) { recent } else { order }).cloned()?;
            Some(match draw {
                4..=6 => Wish::Triage(incident),
                7..=9 => Wish::Ignore(incident),
                _ => Wish::Replay(incident),
            })
        }
    }
}

fn restore(world: &World) -> Option<Wish> {
    let parts: Vec<String> = world.blobs.keys().into_iter().filter(|key| archive::is_part(key)).collect();
    let part = world.dice.pick(&parts).cloned()?;
    let topics = world.dice.pick(&world.plan.topics()).cloned().filter(|_| world.dice.chance(0.5));
    Some(Wish::Restore(part, topics.into_iter().collect()))
}

fn replay_many(world: &World) -> Wish {
    let dice = &world.dice;
    let topics: Vec<String> = world.plan.topics().iter().map(Topic::to_string).collect();
    let tenant = dice.pick(&world.plan.tenants).cloned();
    let topic = dice.pick(&topics).cloned();
    let rate = dice.between(1, 60) as u32;
    match dice.below(4) {
        0 => Wish::ReplayMany(Of::Incidents, FilterInput::default(), true, None, rate),
        1 => Wish::ReplayMany(
            Of::Incidents,
            FilterInput { topic, ..FilterInput::default() },
            false,
            None,
            rate,
        ),
        2 => {
            let error = Some("POISON".to_owned());
            let filter = FilterInput { tenant, error, ..FilterInput::default() };
            Wish::ReplayMany(Of::Incidents, filter, false, None, rate)
        }
        _ => {
            let filter =
                FilterInput { tenant, r#type: Some("shop.visit".to_owned()), ..FilterInput::default() };
            Wish::ReplayMany(Of::Events, filter, false, topic.map(|topic| vec![topic]), rate)
        }
    }
}

/// Every event once more, to one topic.
pub fn replay_all_events(world: &World) -> Wish {
    let topic = world.dice.pick(&world.plan.topics()).map(Topic::to_string);
    let rate = world.dice.between(5, 40) as u32;
    Wish::ReplayMany(Of::Events, FilterInput::default(), true, topic.map(|topic| vec![topic]), rate)
}

/// Carries a wish out in a run of its own.
pub fn start(world: &Rc<World>, wish: Wish) {
    let actor = match wish {
        Wish::Restore(..) => Actor::Restorer,
        Wish::Run(_) => Actor::ReplayRunner,
        _ => Actor::Operator,
    };
    let process = Process::new(world, actor);
    process.note(None, || format!("operator wants {wish:?}"));
    process.spawn(carry_out(Rc::clone(&process), wish));
}

async fn carry_out(process: Rc<Process>, wish: Wish) {
    let world = Rc::clone(&process.world);
    let (ledger, clock) = (ledger(&process), SimClock(Rc::clone(&process)));
    let token = process.token();
    let op = Operation { id: &token, actor: "operator", note: None, now: clock.now() };
    let operations = Operations { ledger: &ledger };
    let jobs = Jobs { ledger: &ledger };
    let (action, answer) = match &wish {
        Wish::Triage(id) => ("triage", operations.triage(id, &op).await.map(drop)),
        Wish::Ignore(id) => ("ignore", operations.ignore(id, &op).await.map(drop)),
        Wish::Replay(id) => {
            let queues = SimQueues(Rc::clone(&process));
            let in_transit_deadline_ms = world.plan.in_transit_deadline_ms;
            let replayer =
                Replayer { ledger: &ledger, queues: &queues, clock: &clock, in_transit_deadline_ms };
            ("replay", replayer.replay_one(id, &op).await.map(drop))
        }
        Wish::ReplayMany(of, filter, all, topics, rate) => {
            let request = JobRequest::parse(*of, filter.clone(), *all, topics.clone(), Some(*rate));
            let made = match request {
                Ok(request) => jobs.create(&request, &op).await,
                Err(error) => Err(error),
            };
            let made = made.map(|job| world.replays.borrow_mut().push(job.replay_id));
            ("replay_many", made)
        }
        Wish::Cancel(id) => ("cancel", jobs.cancel(id, &op).await.map(drop)),
        Wish::Run(id) => return run(&process, id, RUN_CALL_MS).await,
        Wish::Restore(part, topics) => {
            let blobs = SimBlobs(Rc::clone(&process));
            let restored = Restorer { ledger: &ledger, blobs: &blobs }.restore(part, topics, &op).await;
            process.note(None, || format!("restore: {restored:?}"));
            return restored_as(&world, part, restored.map(|_| token.as_str()));
        }
    };
    process.note(None, || format!("{action}: {answer:?}"));
    match answer {
        Ok(()) => world.witness.borrow_mut().operation_done(&token),
        Err(OperationError::Invalid { field, why }) => {
            world.violation("operations", None, format!("{wish:?} is refused: {field} {why}"));
        }
        Err(_) => {}
    }
}

/// A part that exists is either read back or, if a port fails, not; there is no third.
fn restored_as(world: &World, part: &str, restored: Result<&str, RestoreError>) {
    match restored {
        Ok(op_id) => world.witness.borrow_mut().operation_done(op_id),
        Err(RestoreError::Blob(_) | RestoreError::Sql(_)) => {}
        Err(error) => {
            world.violation(archive::RETENTION, None, format!("{part} cannot be read back: {error}"))
        }
    }
}
