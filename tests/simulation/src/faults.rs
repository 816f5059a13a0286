//! What goes wrong: at random while the storm lasts, or exactly once at a given step.

mod kind;
mod weather;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::dice::Dice;
use crate::process::Actor;

pub use kind::FaultKind;
pub use weather::Weather;

/// The ports at which faults happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// A shard of the ledger, by number.
    Sql(usize),
    /// A queue, by number.
    Queue(usize),
    /// The blob store.
    Blobs,
    /// What a queue delivers, by number.
    Delivery(usize),
    /// A webhook that takes alerts.
    Sink,
}

/// What becomes of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes well.
    Well,
    /// Nothing happens, and the caller learns that.
    Refused,
    /// It happens, and the caller is told that it did not.
    AnswerLost,
    /// The caller ends before it.
    KilledBefore,
    /// The caller ends after it.
    KilledAfter,
    /// It happens twice.
    Repeated,
}

/// A span during which a port answers nothing.
#[derive(Clone, Debug)]
pub struct Outage {
    /// What is down.
    pub port: Port,
    /// From when.
    pub from_ms: i64,
    /// Until when.
    pub until_ms: i64,
}

/// One fault at one step of one kind of actor, for the exhaustive loop.
#[derive(Clone, Debug)]
pub struct Script {
    /// Whose calls are counted.
    pub actor: Actor,
    /// The call that is hit, from 0.
    pub step: usize,
    /// What becomes of it.
    pub fate: Fate,
}

/// Decides about every call and counts what it does.
pub struct Faults {
    weather: Weather,
    outages: RefCell<Vec<Outage>>,
    script: RefCell<Option<Script>>,
    steps: Cell<usize>,
    raging: Cell<bool>,
    counts: RefCell<Vec<u64>>,
    dice: Rc<Dice>,
}

/// How much longer a slow call takes, in milliseconds.
const SLOW_MS: (i64, i64) = (1_000, 25_000);

impl Faults {
    /// Faults of this weather, and at these times of whole ports.
    pub fn new(weather: Weather, outages: Vec<Outage>, dice: Rc<Dice>) -> Self {
        Self {
            weather,
            outages: RefCell::new(outages),
            script: RefCell::default(),
            steps: Cell::new(0),
            raging: Cell::new(true),
            counts: RefCell::new(vec![0; FaultKind::ALL.len()]),
            dice,
        }
    }

    /// From now on nothing goes wrong but what the script says, and its calls are counted.
    pub fn follow(&self, script: Script) {
        *self.script.borrow_mut() = Some(script);
        self.steps.set(0);
    }

    /// The port is down from now on, until the calm or until it is [healed](Self::heal).
    pub fn take_down(&self, port: Port) {
        self.outages.borrow_mut().push(Outage { port, from_ms: i64::MIN, until_ms: i64::MAX });
    }

    /// All ports are up again.
    pub fn heal(&self) {
        self.outages.borrow_mut().clear();
    }

    /// From now on everything goes well.
    pub fn calm_down(&self) {
        self.raging.set(false);
        self.outages.borrow_mut().clear();
    }

    /// The storm comes back, with these outages.
    pub fn rage_again(&self, outages: Vec<Outage>) {
        self.raging.set(true);
        *self.outages.borrow_mut() = outages;
    }

    /// Until when a queue delivers nothing, if it does not now.
    pub fn paused_until_ms(&self, queue: usize, now_ms: i64) -> Option<i64> {
        let outages = self.outages.borrow();
        let paused = |outage: &&Outage| {
            outage.port == Port::Delivery(queue) && (outage.from_ms..outage.until_ms).contains(&now_ms)
        };
        outages.iter().filter(paused).map(|outage| outage.until_ms).max()
    }

    /// Whether faults may happen now.
    pub fn is_raging(&self) -> bool {
        self.raging.get()
    }

    /// Counts a fault.
    pub fn count(&self, kind: FaultKind) {
        if let Some(count) = self.counts.borrow_mut().get_mut(kind as usize) {
            *count += 1;
        }
    }

    /// How many faults of each kind there were, in the order of [`FaultKind::ALL`].
    pub fn counts(&self) -> Vec<u64> {
        self.counts.borrow().clone()
    }

    /// How many calls the script has counted.
    pub fn steps(&self) -> usize {
        self.steps.get()
    }

    /// Whether something of this probability goes wrong now; counted if it does.
    pub fn strikes(&self, probability: impl Fn(&Weather) -> f64, kind: FaultKind) -> bool {
        let strikes = self.raging.get() && self.dice.chance(probability(&self.weather));
        if strikes {
            self.count(kind);
        }
        strikes
    }

    /// What becomes of a call.
    pub fn fate(&self, port: Port, actor: Actor, now_ms: i64) -> Fate {
        if let Some(script) = &*self.script.borrow() {
            return self.scripted(script, actor);
        }
        if !self.raging.get() {
            return Fate::Well;
        }
        let down =
            |outage: &Outage| outage.port == port && (outage.from_ms..outage.until_ms).contains(&now_ms);
        if self.outages.borrow().iter().any(down) {
            self.count(down_kind(port));
            return Fate::Refused;
        }
        if self.strikes(|weather| weather.refused, refused_kind(port)) {
            Fate::Refused
        } else if self.strikes(|weather| weather.answer_lost, lost_kind(port)) {
            Fate::AnswerLost
        } else if self.strikes(|weather| weather.killed / 2.0, FaultKind::KilledBefore) {
            Fate::KilledBefore
        } else if self.strikes(|weather| weather.killed / 2.0, FaultKind::KilledAfter) {
            Fate::KilledAfter
        } else {
            Fate::Well
        }
    }

    fn scripted(&self, script: &Script, actor: Actor) -> Fate {
        if actor != script.actor || !self.raging.get() {
            return Fate::Well;
        }
        let step = self.steps.get();
        self.steps.set(step + 1);
        if step == script.step { script.fate } else { Fate::Well }
    }

    /// How much longer than usual a call takes.
    pub fn delay_ms(&self, port: Port) -> i64 {
        let kind = match port {
            Port::Sql(_) => FaultKind::SqlSlow,
            Port::Queue(_) | Port::Delivery(_) | Port::Sink => FaultKind::SendSlow,
            Port::Blobs => FaultKind::BlobSlow,
        };
        if self.strikes(|weather| weather.slow, kind) { self.dice.between(SLOW_MS.0, SLOW_MS.1) } else { 0 }
    }
}

fn down_kind(port: Port) -> FaultKind {
    match port {
        Port::Sql(_) => FaultKind::SqlDown,
        Port::Queue(_) => FaultKind::QueueDown,
        Port::Delivery(_) => FaultKind::DeliveryPaused,
        Port::Blobs => FaultKind::BlobDown,
        Port::Sink => FaultKind::SinkRefused,
    }
}

fn refused_kind(port: Port) -> FaultKind {
    match port {
        Port::Sql(_) => FaultKind::SqlRefused,
        Port::Queue(_) | Port::Delivery(_) => FaultKind::SendRefused,
        Port::Blobs => FaultKind::BlobRefused,
        Port::Sink => FaultKind::SinkRefused,
    }
}

fn lost_kind(port: Port) -> FaultKind {
    match port {
        Port::Sql(_) => FaultKind::SqlAnswerLost,
        Port::Queue(_) | Port::Delivery(_) => FaultKind::SendAnswerLost,
        Port::Blobs => FaultKind::BlobAnswerLost,
        Port::Sink => FaultKind::SinkAnswerLost,
    }
}
