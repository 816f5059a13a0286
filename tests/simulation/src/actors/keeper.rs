//! The alerter tells operators every minute of what has failed, and the keeper moves old events to the archive. Nightly would
//! be rare enough for a world to end before anything goes wrong, so here it is at it all through the second storm.

use std::rc::Rc;

use swarm_domain::alert::{Ages, Alerter};
use swarm_domain::limits::ALERT_SECONDS;
use swarm_domain::ports::Clock;
use swarm_domain::retention::Retention;

use crate::actors::operator::{self, Wish};
use crate::faults::FaultKind;
use crate::plan::MINUTE_MS;
use crate::ports::{SimBlobs, SimClock, SimSinks, ledger};
use crate::process::{Actor, Process};
use crate::world::World;

/// The cron of alerts.
pub async fn alert_cron(world: Rc<World>) {
    loop {
        world.wait_for_cron(world.plan.alerts_every_ms).await;
        if world.faults.strikes(|weather| weather.cron_missed, FaultKind::CronMissed) {
            continue;
        }
        alert(&world);
        if world.faults.strikes(|weather| weather.cron_doubled, FaultKind::CronDoubled) {
            alert(&world);
        }
    }
}

/// One run of alerting.
pub fn alert(world: &Rc<World>) {
    let process = Process::new(world, Actor::Alerter);
    process.spawn(tell(Rc::clone(&process)));
}

async fn tell(process: Rc<Process>) {
    let (ledger, clock) = (ledger(&process), SimClock(Rc::clone(&process)));
    let sinks = SimSinks(Rc::clone(&process));
    let configured = &process.world.plan.sinks;
    let alerter =
        Alerter { ledger: &ledger, sinks: &sinks, configured, clock: &clock, ages: Ages::default() };
    let deadline = clock.now().plus_ms(ALERT_SECONDS * 1_000);
    let alerted = alerter.run(&process.token(), deadline).await;
    process.note(None, || format!("{alerted:?}"));
}

/// Runs of retention, until a moment.
pub async fn nights(world: Rc<World>, until_ms: i64) {
    // The first run finds most to do, so that is when it is disturbed most.
    let mut disturbed = 0.7;
    while world.executor.now_ms() < until_ms {
        let wait_ms = world.dice.between(2 * MINUTE_MS, 20 * MINUTE_MS);
        world.executor.sleep_ms(wait_ms).await;
        if world.dice.chance(std::mem::replace(&mut disturbed, 0.15)) {
            // Somebody has old events repeated while retention moves them away.
            operator::start(&world, operator::replay_all_events(&world));
            world.executor.sleep_ms(2_000).await;
            let newest = world.replays.borrow().last().cloned();
            newest.into_iter().for_each(|replay| operator::start(&world, Wish::Run(replay)));
            world.executor.sleep_ms(world.dice.between(0, 5_000)).await;
        }
        retain(&world);
        if world.faults.strikes(|weather| weather.cron_doubled, FaultKind::CronDoubled) {
            retain(&world);
        }
    }
}

/// One run of retention.
pub fn retain(world: &Rc<World>) {
    let process = Process::new(world, Actor::Keeper);
    process.spawn(keep(Rc::clone(&process)));
}

async fn keep(process: Rc<Process>) {
    let world = &process.world;
    let (ledger, clock) = (ledger(&process), SimClock(Rc::clone(&process)));
    let blobs = SimBlobs(Rc::clone(&process));
    let retention = Retention { ledger: &ledger, blobs: &blobs, clock: &clock, periods: &world.plan.periods };
    let (seconds, events_max) = if world.faults.is_raging() {
        (world.dice.between(5, 600), world.dice.between(20, 2_000))
    } else {
        (600, 50_000)
    };
    let deadline = clock.now().plus_ms(seconds * 1_000);
    let retained = retention.run(&process.token(), deadline, events_max.unsigned_abs()).await;
    process.note(None, || format!("{retained:?}"));
}
