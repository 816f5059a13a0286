//! What goes wrong: at random while the storm lasts, or exactly once at a given step.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::dice::Dice;
use crate::process::Actor;

/// Declares the kinds of faults with the names under which they are counted.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal,)*) => {
        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum FaultKind { $($(#[$doc])* $kind,)* }

        impl FaultKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// What it is called in reports.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    /// D1 did not do it.
    SqlRefused "D1 refused",
    /// D1 did it, and its answer got lost.
    SqlAnswerLost "D1 did it, answer lost",
    /// D1 took its time.
    SqlSlow "D1 slow",
    /// D1 did not answer for a while.
    SqlDown "D1 down",
    /// A queue did not take a message.
    SendRefused "queue refused",
    /// A queue took a message, and its answer got lost.
    SendAnswerLost "queue took it, answer lost",
    /// A queue took its time.
    SendSlow "queue slow",
    /// A queue took nothing for a while.
    QueueDown "queue down",
    /// R2 did not do it.
    BlobRefused "R2 refused",
    /// R2 did it, and its answer got lost.
    BlobAnswerLost "R2 did it, answer lost",
    /// R2 took its time.
    BlobSlow "R2 slow",
    /// R2 did not answer for a while.
    BlobDown "R2 down",
    /// A webhook of alerts did not take one.
    SinkRefused "alert sink refused",
    /// A webhook of alerts took one, and its answer got lost.
    SinkAnswerLost "alert sink took it, answer lost",
    /// A run ended just before a call.
    KilledBefore "killed before a call",
    /// A run ended just after a call.
    KilledAfter "killed after a call",
    /// A run went on long after its lease had ended.
    Straggled "straggled past its lease",
    /// The answer never reached who had called.
    AnswerLost "answer to the caller lost",
    /// A clock is ahead or behind.
    ClockSkewed "clock skewed",
    /// A cron did not come.
    CronMissed "cron missed",
    /// A cron came twice at once.
    CronDoubled "two crons at once",
    /// A queue stored a message twice.
    Duplicated "message duplicated",
    /// A queue delivered a message that had been acknowledged.
    AckLost "acknowledgement lost",
    /// A queue delivered late messages before early ones.
    Reordered "messages reordered",
    /// A queue lost a message.
    MessageLost "message lost",
    /// Something that is not the gateway's got into a queue.
    ForeignMessage "foreign message",
    /// A handler failed for this time.
    HandlerTransient "handler failed, transient",
    /// A handler failed for good.
    HandlerPermanent "handler failed, permanent",
    /// A handler ended its isolate.
    HandlerPanicked "handler panicked",
    /// A handler never came back.
    HandlerHung "handler hung",
    /// A handler's effect was refused.
    EffectRefused "effect refused",
    /// An effect was carried out twice.
    Repeated "call carried out twice",
}

/// The ports at which faults happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// A shard of the ledger, by number.
    Sql(usize),
    /// A queue, by number.
    Queue(usize),
    /// The blob store.
    Blobs,
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

/// How likely faults are, per call unless said otherwise.
#[derive(Clone, Debug, Default)]
pub struct Weather {
    /// Refused.
    pub refused: f64,
    /// Done, answer lost.
    pub answer_lost: f64,
    /// Slow by seconds.
    pub slow: f64,
    /// Killed, before or after.
    pub killed: f64,
    /// Of settling calls: long after the lease.
    pub straggled: f64,
    /// Per answer to a caller.
    pub caller_answer_lost: f64,
    /// Per run: its clock is off.
    pub skewed: f64,
    /// Per cron.
    pub cron_missed: f64,
    /// Per cron.
    pub cron_doubled: f64,
    /// Per message sent.
    pub duplicated: f64,
    /// Per message acknowledged.
    pub ack_lost: f64,
    /// Per message sent.
    pub message_lost: f64,
    /// Per batch: taken in any order.
    pub reordered: f64,
}

impl Weather {
    /// A storm of its own kind for each seed: some worlds see many kills, others many lost answers, few see everything.
    pub fn draw(dice: &Dice) -> Self {
        let level = |most: f64| if dice.chance(0.2) { 0.0 } else { dice.fraction(0.0, most) };
        Self {
            refused: level(0.04),
            answer_lost: level(0.04),
            slow: level(0.03),
            killed: level(0.02),
            straggled: level(0.01),
            caller_answer_lost: level(0.05),
            skewed: level(0.5),
            cron_missed: level(0.3),
            cron_doubled: level(0.5),
            duplicated: level(0.05),
            ack_lost: level(0.03),
            message_lost: level(0.03),
            reordered: level(0.5),
        }
    }
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
            Port::Queue(_) | Port::Sink => FaultKind::SendSlow,
            Port::Blobs => FaultKind::BlobSlow,
        };
        if self.strikes(|weather| weather.slow, kind) { self.dice.between(SLOW_MS.0, SLOW_MS.1) } else { 0 }
    }
}

fn down_kind(port: Port) -> FaultKind {
    match port {
        Port::Sql(_) => FaultKind::SqlDown,
        Port::Queue(_) => FaultKind::QueueDown,
        Port::Blobs => FaultKind::BlobDown,
        Port::Sink => FaultKind::SinkRefused,
    }
}

fn refused_kind(port: Port) -> FaultKind {
    match port {
        Port::Sql(_) => FaultKind::SqlRefused,
        Port::Queue(_) => FaultKind::SendRefused,
        Port::Blobs => FaultKind::BlobRefused,
        Port::Sink => FaultKind::SinkRefused,
    }
}

fn lost_kind(port: Port) -> FaultKind {
    match port {
        Port::Sql(_) => FaultKind::SqlAnswerLost,
        Port::Queue(_) => FaultKind::SendAnswerLost,
        Port::Blobs => FaultKind::BlobAnswerLost,
        Port::Sink => FaultKind::SinkAnswerLost,
    }
}
