//! Everything that the gateway touches, and the course of a world: storm, calm, and the look at what is left.

use std::rc::Rc;

use serde::de::DeserializeOwned;
use swarm_domain::ports::{Outcome, Sql, SqlError, Statement};
use swarm_domain::time::Timestamp;
use swarm_native::{MemoryBlobs, SqliteShard, block_on};

use crate::actors::{client, core::Cores, keeper, operator, stranger, sweeper};
use crate::broker::{Broker, Letter, pump};
use crate::checkers::{acks, changes, payloads, rest};
use crate::dice::Dice;
use crate::executor::Executor;
use crate::faults::Faults;
use crate::mutants::{Mutant, Mutation};
use crate::plan::{DAY_MS, MINUTE_MS, Plan, START_MS};
use crate::process::Process;
use crate::report::WorldReport;
use crate::trace::{ProcessId, Trace};
use crate::watch::Watch;
use crate::witness::{EventNo, Violation, Witness};

use std::cell::{Cell, RefCell};

/// How many violations a world keeps; the first one says most.
const VIOLATIONS_MAX: usize = 20;
/// How long it takes until what is done may go to the archive, for most tenants.
const OLD_MS: i64 = DAY_MS + DAY_MS / 12;
/// How often crons come while nothing happens.
const RARE_CRON_MS: i64 = DAY_MS / 24;
/// How long the calm may take until everything is at rest.
const CALM_MS_MAX: i64 = DAY_MS;

/// A world. Every actor holds it.
pub struct World {
    /// What it is made of.
    pub plan: Plan,
    /// Its time and tasks.
    pub executor: Executor,
    /// Its chance.
    pub dice: Rc<Dice>,
    /// What goes wrong in it.
    pub faults: Faults,
    /// The shards of the ledger.
    pub shards: Vec<SqliteShard>,
    watches: Vec<Watch>,
    /// R2.
    pub blobs: MemoryBlobs,
    /// The queues.
    pub broker: Broker,
    /// The core's isolates.
    pub cores: Cores,
    /// What an outsider knows.
    pub witness: RefCell<Witness>,
    /// Replays of many that operators have asked for.
    pub replays: RefCell<Vec<String>>,
    crons_are_rare: Cell<bool>,
    trace: Trace,
    mutation: Option<Mutation>,
}

/// A world that could not be set up.
#[derive(Debug)]
pub struct NotBuilt(pub String);

impl World {
    /// The world of this seed.
    pub fn drawn(seed: u64, events: usize, mutant: Option<Mutant>) -> Result<Rc<Self>, NotBuilt> {
        let dice = Rc::new(Dice::new(seed));
        let plan = Plan::draw(&dice, events);
        let outages = plan.outages(&dice, START_MS);
        let faults = Faults::new(plan.weather.clone(), outages, Rc::clone(&dice));
        Self::build(plan, faults, dice, mutant)
    }

    /// A world in which nothing goes wrong by chance.
    pub fn still() -> Result<Rc<Self>, NotBuilt> {
        let dice = Rc::new(Dice::new(1));
        let plan = Plan::still();
        let faults = Faults::new(plan.weather.clone(), Vec::new(), Rc::clone(&dice));
        Self::build(plan, faults, dice, None)
    }

    fn build(
        plan: Plan,
        faults: Faults,
        dice: Rc<Dice>,
        mutant: Option<Mutant>,
    ) -> Result<Rc<Self>, NotBuilt> {
        let mut shards = Vec::new();
        let mut watches = Vec::new();
        for _ in 0..plan.shards {
            let shard = SqliteShard::migrated().map_err(|error| NotBuilt(error.to_string()))?;
            watches.push(Watch::install(shard.connection()).map_err(|error| NotBuilt(error.to_string()))?);
            shards.push(shard);
        }
        let world = Rc::new(Self {
            executor: Executor::new(START_MS, Rc::clone(&dice)),
            broker: Broker::new(plan.queues.clone()),
            plan,
            dice,
            faults,
            shards,
            watches,
            blobs: MemoryBlobs::new(),
            cores: Cores::default(),
            witness: RefCell::default(),
            replays: RefCell::default(),
            crons_are_rare: Cell::new(false),
            trace: Trace::default(),
            mutation: mutant.map(Mutation::new),
        });
        for number in world.broker.numbers() {
            world.start(pump(Rc::clone(&world), number));
        }
        world.start(sweeper::cron(Rc::clone(&world)));
        world.start(operator::replay_cron(Rc::clone(&world)));
        world.start(keeper::alert_cron(Rc::clone(&world)));
        Ok(world)
    }

    /// Starts a machine of the platform, which nothing ends.
    pub fn start(&self, work: impl Future<Output = ()> + 'static) {
        self.executor.spawn(self.executor.next_number(), work);
    }

    /// Lives through it all: a storm, calm, and in some worlds another storm, in which the events of the first are old.
    pub fn run(self: &Rc<Self>) {
        let late = if self.plan.second_storm { self.plan.events / 3 } else { 0 };
        self.storm(self.plan.events - late);
        self.calm();
        if self.plan.second_storm && !self.is_broken() {
            self.wait_until_old();
            self.faults.rage_again(self.plan.outages(&self.dice, self.executor.now_ms()));
            self.start(keeper::nights(Rc::clone(self), self.executor.now_ms() + self.plan.storm_ms));
            self.storm(late);
            self.calm();
        }
        self.check();
    }

    fn storm(self: &Rc<Self>, events: usize) {
        let now_ms = self.executor.now_ms();
        let ends_ms = now_ms + self.plan.storm_ms + self.plan.storm_ms / 4;
        client::send_out(self, events, now_ms, now_ms + self.plan.storm_ms);
        self.start(operator::shift(Rc::clone(self), ends_ms));
        self.start(operator::shift(Rc::clone(self), ends_ms));
        self.start(stranger::visits(Rc::clone(self), ends_ms));
        self.live_until(ends_ms);
    }

    /// Lets so much time pass that what is done may go to the archive. There is nothing to do, so crons come seldom.
    pub fn wait_until_old(&self) {
        self.crons_are_rare.set(true);
        self.live_until(self.executor.now_ms() + OLD_MS);
        self.crons_are_rare.set(false);
        self.live_until(self.executor.now_ms() + RARE_CRON_MS);
    }

    /// Waits for the next time of a cron.
    pub async fn wait_for_cron(&self, every_ms: i64) {
        let ms = if self.crons_are_rare.get() { RARE_CRON_MS } else { every_ms };
        self.executor.sleep_ms(ms).await;
    }

    /// The time as the ledger writes it.
    pub fn now_text(&self) -> String {
        Timestamp::from_unix_ms(self.executor.now_ms()).to_string()
    }

    /// Lets time pass until a moment, or until something has gone very wrong.
    pub fn live_until(&self, until_ms: i64) {
        self.executor.run_until(until_ms, &|| self.is_broken());
    }

    /// Lets time pass without faults until nothing is left to happen.
    pub fn calm(&self) {
        self.faults.calm_down();
        self.note(0, None, || "calm".to_owned());
        let until_ms = self.executor.now_ms() + CALM_MS_MAX;
        while self.executor.now_ms() < until_ms && !self.is_broken() && rest::unrest(self).is_some() {
            self.live_until(self.executor.now_ms() + 10 * MINUTE_MS);
        }
    }

    /// Looks at what is left.
    pub fn check(&self) {
        rest::check(self);
        payloads::check(self);
    }

    /// Whether there is no point in going on: too much is wrong, or what a mutant was to be caught at.
    fn is_broken(&self) -> bool {
        let violations = &self.witness.borrow().violations;
        let caught = |mutation: &Mutation| violations.iter().any(|v| mutation.is_caught_by(v.checker));
        violations.len() >= VIOLATIONS_MAX
            || (!violations.is_empty() && self.mutation.as_ref().is_some_and(caught))
    }

    /// Ends the world and tells what came of it.
    pub fn end(self: Rc<Self>, seed: u64) -> WorldReport {
        let hash = self.trace.hash();
        let witness = self.witness.borrow();
        let violations = witness.violations.clone();
        let trace = match violations.first() {
            Some(Violation { event: Some(event), .. }) => self.trace.of_event(*event),
            Some(_) => self.trace.tail(100),
            None => String::new(),
        };
        let report = WorldReport {
            seed,
            events: witness.events.iter().filter(|event| event.wanted).count() as u64,
            acknowledged: witness.events.iter().filter(|event| event.acknowledged).count() as u64,
            faults: self.faults.counts(),
            simulated_ms: self.executor.now_ms() - START_MS,
            hash,
            violations,
            trace,
            figures: figures(&witness),
        };
        drop(witness);
        self.executor.kill_all();
        report
    }

    /// Runs statements as one transaction of one shard, as the mutant lets them through.
    pub fn commit(
        &self,
        process: &Process,
        shard: usize,
        statements: Vec<Statement>,
    ) -> Result<Vec<Outcome>, SqlError> {
        let statements = match &self.mutation {
            Some(mutation) => mutation.rewrite(statements),
            None => statements,
        };
        let answer = block_on(self.shards[shard].batch(statements));
        let seen = self.watches[shard].take();
        match &answer {
            Ok(_) => changes::committed(self, process, seen),
            Err(error) => process.note(None, || format!("rolled back: {error}")),
        }
        answer
    }

    /// Rows of all shards, past all faults.
    pub fn rows<T: DeserializeOwned>(&self, sql: &'static str) -> Vec<T> {
        let rows = |shard: &SqliteShard| {
            let answer = block_on(shard.batch(vec![Statement::new(sql, Vec::new())]));
            let rows = answer.and_then(|mut outcomes| outcomes.remove(0).decode());
            rows.unwrap_or_else(|error| {
                self.violation("simulation", None, format!("{sql}: {error}"));
                Vec::new()
            })
        };
        self.shards.iter().flat_map(rows).collect()
    }

    /// Writes into the trace.
    pub fn note(&self, process: ProcessId, event: Option<EventNo>, text: impl FnOnce() -> String) {
        self.trace.push(self.executor.now_ms(), process, event, text());
    }

    /// Something must never be, and is.
    pub fn violation(&self, checker: &'static str, event: Option<EventNo>, text: String) {
        self.note(0, event, || format!("VIOLATION [{checker}] {text}"));
        self.witness.borrow_mut().violations.push(Violation { checker, event, text });
    }

    /// Looks at a message that was acknowledged.
    pub fn check_ack(&self, process: &Process, queue: usize, letter: &Letter, batch: &[Letter]) {
        acks::check(self, process, queue, letter, batch);
    }

    /// Whether this mutant is at work; an actor that asks does wrong if so.
    pub fn is_mutant(&self, name: &str) -> bool {
        let mutation = self.mutation.as_ref().filter(|mutation| mutation.name() == name);
        mutation.inspect(|mutation| mutation.hit()).is_some()
    }

    /// How often the mutant did wrong.
    pub fn mutant_hits(&self) -> u64 {
        self.mutation.as_ref().map_or(0, Mutation::hits)
    }
}

fn figures(witness: &Witness) -> Vec<(&'static str, u64)> {
    let dispatches = || witness.events.iter().flat_map(|event| event.dispatches.values());
    let repetitions = || dispatches().flat_map(|facts| facts.repetitions.values());
    vec![
        ("dispatches", dispatches().filter(|facts| facts.row.is_some()).count() as u64),
        ("handler starts", repetitions().map(|r| u64::from(r.starts)).sum()),
        ("deliveries", repetitions().map(|r| u64::from(r.delivered)).sum()),
        ("dead letters", repetitions().map(|r| u64::from(r.letters)).sum()),
        ("incidents", dispatches().filter(|facts| facts.incident.is_some()).count() as u64),
        ("foreign incidents", witness.foreign.len() as u64),
        ("operations", witness.operations.len() as u64),
        ("alerts", witness.alerts.len() as u64),
        ("events deleted by retention", witness.events.iter().map(|event| u64::from(event.deleted)).sum()),
    ]
}
