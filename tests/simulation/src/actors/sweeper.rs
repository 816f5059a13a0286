//! The sweeper's cron: every two minutes, sometimes twice at once, sometimes not at all.

use std::rc::Rc;

use swarm_domain::limits::SWEEP_SUBREQUESTS_DEFAULT;
use swarm_domain::ports::Clock;
use swarm_domain::sweep::{Budget, Sweeper};

use crate::faults::FaultKind;
use crate::plan::MINUTE_MS;
use crate::ports::{SimClock, SimQueues, ledger};
use crate::process::{Actor, Process};
use crate::world::World;

/// How long a run may take.
const RUN_MS: i64 = 90_000;
/// How many calls a run may make: few now and then, so that it ends in the middle.
const CALLS: [usize; 4] = [9, 40, 1_000, 1_000];

/// Comes again and again for as long as the world stands.
pub async fn cron(world: Rc<World>) {
    loop {
        world.wait_for_cron(2 * MINUTE_MS).await;
        if world.faults.strikes(|weather| weather.cron_missed, FaultKind::CronMissed) {
            continue;
        }
        start(&world);
        if world.faults.strikes(|weather| weather.cron_doubled, FaultKind::CronDoubled) {
            start(&world);
        }
    }
}

/// Starts one run.
pub fn start(world: &Rc<World>) {
    let process = Process::new(world, Actor::Sweeper);
    process.spawn(sweep(Rc::clone(&process)));
}

async fn sweep(process: Rc<Process>) {
    let (ledger, queues) = (ledger(&process), SimQueues(Rc::clone(&process)));
    let clock = SimClock(Rc::clone(&process));
    let sweeper = Sweeper {
        ledger: &ledger,
        queues: &queues,
        clock: &clock,
        in_transit_deadline_ms: process.world.plan.in_transit_deadline_ms,
    };
    // Without faults every run has calls enough; a run that is too small for its work is one of them.
    let raging = process.world.faults.is_raging();
    let calls = if raging {
        process.world.dice.pick(&CALLS).copied().unwrap_or_default()
    } else {
        SWEEP_SUBREQUESTS_DEFAULT as usize
    };
    let budget = Budget::new(clock.now().plus_ms(RUN_MS), calls);
    let swept = sweeper.sweep(&process.token(), budget).await;
    process.note(None, || format!("{swept:?}"));
}
