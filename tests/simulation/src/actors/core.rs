//! The core: accepts events and writes the outcomes of its sends late, as its Worker does: they wait in the isolate for those
//! of other events, and die with it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use swarm_domain::accept::Acceptor;
use swarm_domain::caller::Caller;
use swarm_domain::event::EventInput;
use swarm_domain::limits::MARKS_WAIT_MS_DEFAULT;
use swarm_domain::ports::Clock;
use swarm_domain::receipt::Receipt;
use swarm_domain::settle::{Settlement, settle};

use crate::executor::{Isolate, Signal};
use crate::ports::{SimBlobs, SimClock, SimQueues, ledger};
use crate::process::{Actor, Process};
use crate::world::World;

/// An isolate of the core.
struct Core {
    isolate: Isolate,
    alive: Cell<bool>,
    waiting: RefCell<Vec<Settlement>>,
    attended: Cell<bool>,
}

/// The isolates that calls go to.
#[derive(Default)]
pub struct Cores(RefCell<Vec<Rc<Core>>>);

/// How many there are at once.
const ISOLATES: usize = 3;

/// What a caller gets: the receipts, or nothing if the core ended before it answered.
#[derive(Default)]
struct Reply {
    receipts: RefCell<Option<Vec<Receipt>>>,
    ended: Cell<bool>,
    signal: Signal,
}

/// Notices the end of a run, however it comes.
struct Guard {
    core: Rc<Core>,
    reply: Option<Rc<Reply>>,
    finished: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.finished {
            self.core.alive.set(false);
        }
        if let Some(reply) = &self.reply {
            reply.ended.set(true);
            reply.signal.raise();
        }
    }
}

impl Cores {
    fn any(&self, world: &Rc<World>) -> Rc<Core> {
        let fresh = || {
            Rc::new(Core {
                isolate: world.executor.next_number(),
                alive: Cell::new(true),
                waiting: RefCell::default(),
                attended: Cell::new(false),
            })
        };
        let mut cores = self.0.borrow_mut();
        while cores.len() < ISOLATES {
            cores.push(fresh());
        }
        let at = world.dice.below(ISOLATES);
        if !cores[at].alive.get() {
            cores[at] = fresh();
        }
        Rc::clone(&cores[at])
    }
}

/// Calls `publishBatch` of the core. `None` if no answer came.
pub async fn publish(world: &Rc<World>, caller: Caller, inputs: Vec<EventInput>) -> Option<Vec<Receipt>> {
    let core = world.cores.any(world);
    let process = Process::in_isolate(world, Actor::Core, core.isolate);
    let reply = Rc::new(Reply::default());
    let guard = Guard { core: Rc::clone(&core), reply: Some(Rc::clone(&reply)), finished: false };
    process.spawn(accept(Rc::clone(&process), core, guard, caller, inputs));
    while !reply.ended.get() {
        reply.signal.wait().await;
    }
    reply.receipts.take()
}

async fn accept(
    process: Rc<Process>,
    core: Rc<Core>,
    mut guard: Guard,
    caller: Caller,
    inputs: Vec<EventInput>,
) {
    let world = Rc::clone(&process.world);
    let (ledger, queues, blobs) =
        (ledger(&process), SimQueues(Rc::clone(&process)), SimBlobs(Rc::clone(&process)));
    let acceptor = Acceptor { ledger: &ledger, queues: &queues, blobs: &blobs, routes: &world.plan.routes };
    let now = SimClock(Rc::clone(&process)).now();
    let accepted = acceptor.accept(&caller, inputs, now, &process.token()).await;
    if let Some(reply) = &guard.reply {
        *reply.receipts.borrow_mut() = Some(accepted.receipts);
    }
    guard.finished = true;
    drop(guard);
    write_later(&process, core, accepted.settlements);
}

/// Keeps outcomes until their wait is over, or until one of them is a failure.
fn write_later(process: &Rc<Process>, core: Rc<Core>, settlements: Vec<Settlement>) {
    let urgent = settlements.iter().any(|settlement| settlement.result.is_err());
    core.waiting.borrow_mut().extend(settlements);
    if core.waiting.borrow().is_empty() || (!urgent && core.attended.replace(true)) {
        return;
    }
    let marks = Process::in_isolate(&process.world, Actor::Marks, core.isolate);
    let work = write(Rc::clone(&marks), core, if urgent { 0 } else { MARKS_WAIT_MS_DEFAULT as i64 });
    marks.spawn(work);
}

async fn write(process: Rc<Process>, core: Rc<Core>, wait_ms: i64) {
    let mut guard = Guard { core: Rc::clone(&core), reply: None, finished: false };
    let world = &process.world;
    world.executor.sleep_ms(wait_ms).await;
    if wait_ms > 0 {
        core.attended.set(false);
    }
    let settlements = core.waiting.take();
    let now = SimClock(Rc::clone(&process)).now();
    let written = settle(&ledger(&process), settlements, now, world.plan.in_transit_deadline_ms).await;
    if let Err(error) = written {
        process.note(None, || format!("marks are lost: {error}"));
    }
    guard.finished = true;
}
