//! One run of a Worker: what it is, whose clock it reads, and the end that may come at any call.

use std::cell::Cell;
use std::rc::Rc;

use crate::executor::{Isolate, never};
use crate::faults::{Fate, FaultKind, Port};
use crate::trace::ProcessId;
use crate::witness::EventNo;
use crate::world::World;

/// The kinds of actors on the gateway's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// Accepts events.
    Core,
    /// Writes marks after the answer.
    Marks,
    /// Sends what is due.
    Sweeper,
    /// Handles a topic's messages.
    Consumer,
    /// Makes incidents of dead letters.
    Archiver,
    /// A person or a script with the operators' API.
    Operator,
    /// An operator who has a part of the archive read back.
    Restorer,
    /// Works replays of many off.
    ReplayRunner,
    /// Tells operators of incidents.
    Alerter,
    /// Archives and deletes what is old.
    Keeper,
}

impl Actor {
    /// What it is called in traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Marks => "core's marks",
            Self::Sweeper => "sweeper",
            Self::Consumer => "consumer",
            Self::Archiver => "archiver",
            Self::Operator => "operator",
            Self::Restorer => "restorer",
            Self::ReplayRunner => "replay runner",
            Self::Alerter => "alerter",
            Self::Keeper => "keeper",
        }
    }
}

/// A run of a Worker.
pub struct Process {
    /// Where it runs.
    pub world: Rc<World>,
    /// What the trace calls it.
    pub id: ProcessId,
    /// What it does.
    pub actor: Actor,
    /// What dies with it.
    pub isolate: Isolate,
    /// When it began.
    pub began_at_ms: i64,
    /// By how much its clock is off.
    pub skew_ms: i64,
    /// Whether no handler is at work, so that it may straggle.
    pub handlers_done: Cell<bool>,
    /// Whether the platform's limit has passed. A straggler goes on, but no handler begins any more.
    pub overdue: Cell<bool>,
    /// Whether any of its calls went wrong.
    pub troubled: Cell<bool>,
}

/// How far a Worker's clock may be off.
const SKEW_MS_MAX: i64 = 15_000;
/// How long a call to a port takes each way.
const WAY_MS: (i64, i64) = (1, 30);
/// How long after the platform's own limit a straggler goes on.
const STRAGGLE_MS: (i64, i64) = (16 * 60_000, 60 * 60_000);

impl Process {
    /// A run in an isolate of its own.
    pub fn new(world: &Rc<World>, actor: Actor) -> Rc<Self> {
        let isolate = world.executor.next_number();
        Self::in_isolate(world, actor, isolate)
    }

    /// A run in an isolate that it shares.
    pub fn in_isolate(world: &Rc<World>, actor: Actor, isolate: Isolate) -> Rc<Self> {
        let skewed = world.faults.strikes(|weather| weather.skewed, FaultKind::ClockSkewed);
        let skew_ms = if skewed { world.dice.between(-SKEW_MS_MAX, SKEW_MS_MAX) } else { 0 };
        let process = Self {
            world: Rc::clone(world),
            id: world.executor.next_number(),
            actor,
            isolate,
            began_at_ms: world.executor.now_ms(),
            skew_ms,
            handlers_done: Cell::new(false),
            overdue: Cell::new(false),
            troubled: Cell::new(false),
        };
        if skew_ms != 0 {
            process.note(None, || format!("{} whose clock is off by {skew_ms} ms", actor.name()));
        }
        Rc::new(process)
    }

    /// Runs it as a task.
    pub fn spawn(&self, work: impl Future<Output = ()> + 'static) {
        self.world.executor.spawn(self.isolate, work);
    }

    /// A random token of this run's own.
    pub fn token(&self) -> String {
        format!("{:x}-{}", self.world.dice.number() >> 32, self.id)
    }

    /// Writes into the trace.
    pub fn note(&self, event: Option<EventNo>, text: impl FnOnce() -> String) {
        self.world.note(self.id, event, text);
    }

    /// Ends here and now, with everything in the isolate.
    pub async fn die<T>(&self) -> T {
        self.world.executor.kill(self.isolate);
        never().await
    }

    /// One call to a port: `effect` happens in the middle of it, or not at all, as the faults decide. `Err` says in words
    /// what the caller is told.
    pub async fn call<T>(
        &self,
        port: Port,
        what: &str,
        mut effect: impl FnMut() -> T,
    ) -> Result<T, &'static str> {
        let world = &self.world;
        let fate = world.faults.fate(port, self.actor, world.executor.now_ms());
        if fate != Fate::Well {
            self.troubled.set(true);
            self.note(None, || format!("{what}: {fate:?}"));
        }
        let delay_ms = world.faults.delay_ms(port) + self.straggling_ms(port);
        if delay_ms > 0 {
            self.troubled.set(true);
            self.note(None, || format!("{what}: takes {delay_ms} ms longer"));
        }
        world.executor.sleep_ms(world.dice.between(WAY_MS.0, WAY_MS.1) + delay_ms).await;
        match fate {
            Fate::KilledBefore => return self.die().await,
            Fate::Refused => return Err("refused by the simulation"),
            Fate::Repeated => drop(effect()),
            Fate::Well | Fate::AnswerLost | Fate::KilledAfter => {}
        }
        let answer = effect();
        world.executor.sleep_ms(world.dice.between(WAY_MS.0, WAY_MS.1)).await;
        match fate {
            Fate::KilledAfter => self.die().await,
            Fate::AnswerLost => Err("answer lost by the simulation"),
            _ => Ok(answer),
        }
    }

    /// A consumer whose handlers are through may hang at its last call until long after its lease has ended. Before that the
    /// platform's limit ends it, which is what leases rely on.
    fn straggling_ms(&self, port: Port) -> i64 {
        let may = matches!(port, Port::Sql(_)) && self.handlers_done.get();
        if may && self.world.faults.strikes(|weather| weather.straggled, FaultKind::Straggled) {
            self.world.dice.between(STRAGGLE_MS.0, STRAGGLE_MS.1)
        } else {
            0
        }
    }
}
