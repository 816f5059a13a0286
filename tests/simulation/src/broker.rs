//! The queues as the platform runs them: at least once, in any order, with retries, delays and dead-letter queues, and now and
//! then a message that is lost without a word.

mod delivery;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde::Deserialize;
use swarm_domain::message::DeadLetter;
use swarm_domain::topic::Topic;

use crate::executor::Signal;
use crate::faults::FaultKind;
use crate::process::Process;
use crate::witness::About;
use crate::world::World;

pub use delivery::{InFlight, pump};

/// What a queue is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The messages of a topic.
    Topic(Topic),
    /// What a topic's consumer gave up.
    DeadLetters(Topic),
}

/// How the platform runs a queue.
#[derive(Clone, Debug)]
pub struct QueueSettings {
    /// What it is for.
    pub purpose: Purpose,
    /// Messages per batch.
    pub batch_max: usize,
    /// Repeated deliveries before the dead-letter queue, or before it is deleted where there is none.
    pub max_retries: u32,
    /// The wait after a run that died.
    pub retry_delay_seconds: u32,
    /// How long a batch gathers.
    pub batch_timeout_ms: i64,
    /// Batches at once.
    pub concurrency: usize,
}

/// A message in a queue.
#[derive(Clone)]
pub struct Letter {
    /// Its id in the trace.
    pub id: u64,
    /// Its text.
    pub text: Rc<str>,
    /// Deliveries so far.
    pub attempts: u32,
    /// Not delivered before.
    pub visible_at_ms: i64,
    /// The dispatch that it is about.
    pub about: Option<About>,
}

struct Queue {
    name: String,
    settings: QueueSettings,
    dead_letters: Option<usize>,
    letters: RefCell<Vec<Letter>>,
    batches: Cell<usize>,
    signal: Signal,
}

/// All queues.
pub struct Broker {
    queues: Vec<Queue>,
    loses_dead_letters: Cell<bool>,
}

impl Broker {
    /// A broker with these queues.
    pub fn new(settings: Vec<QueueSettings>) -> Self {
        let name = |purpose: &Purpose| match purpose {
            Purpose::Topic(topic) => topic.queue(),
            Purpose::DeadLetters(topic) => topic.dead_letter_queue(),
        };
        let names: Vec<String> = settings.iter().map(|settings| name(&settings.purpose)).collect();
        let queue = |(settings, queue_name): (QueueSettings, &String)| {
            let dead_letters = match &settings.purpose {
                Purpose::Topic(topic) => names.iter().position(|other| *other == topic.dead_letter_queue()),
                Purpose::DeadLetters(_) => None,
            };
            Queue {
                name: queue_name.clone(),
                settings,
                dead_letters,
                letters: RefCell::default(),
                batches: Cell::new(0),
                signal: Signal::default(),
            }
        };
        let queues = settings.into_iter().zip(&names).map(queue).collect();
        Self { queues, loses_dead_letters: Cell::new(false) }
    }

    /// Whether every dead letter is lost from now on.
    pub fn lose_dead_letters(&self, lose: bool) {
        self.loses_dead_letters.set(lose);
    }

    /// The queue of this name.
    pub fn number_of(&self, name: &str) -> Option<usize> {
        self.queues.iter().position(|queue| queue.name == name)
    }

    /// The numbers of all queues.
    pub fn numbers(&self) -> std::ops::Range<usize> {
        0..self.queues.len()
    }

    /// What a queue is for.
    pub fn settings(&self, number: usize) -> &QueueSettings {
        &self.queue(number).settings
    }

    /// The name of a queue.
    pub fn name(&self, number: usize) -> &str {
        &self.queue(number).name
    }

    /// Whether no message is anywhere.
    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(|queue| queue.letters.borrow().is_empty() && queue.batches.get() == 0)
    }

    fn queue(&self, number: usize) -> &Queue {
        // Numbers come from this broker alone.
        &self.queues[number]
    }

    /// Takes messages from a run of a Worker.
    pub fn send(&self, process: &Process, number: usize, texts: &[String]) {
        for text in texts {
            self.take_in(&process.world, process.id, number, text);
        }
    }

    /// Takes a message, which may be stored twice, or never.
    pub fn take_in(&self, world: &World, process: u64, number: usize, text: &str) {
        let queue = self.queue(number);
        let about = about(world, text);
        let is_letter = matches!(queue.settings.purpose, Purpose::DeadLetters(_));
        if let Some(about) = &about {
            world.witness.borrow_mut().queue_took(about, is_letter);
        }
        let event = about.as_ref().map(|about| about.event);
        let doomed = is_letter && self.loses_dead_letters.get();
        if doomed || world.faults.strikes(|weather| weather.message_lost, FaultKind::MessageLost) {
            world.note(process, event, || format!("{} took a message and will lose it", queue.name));
            return;
        }
        let twice = world.faults.strikes(|weather| weather.duplicated, FaultKind::Duplicated);
        for _ in 0..=usize::from(twice) {
            let id = world.executor.next_number();
            world.note(process, event, || format!("{} took message m{id} {}", queue.name, shown(&about)));
            let delay_ms = world.dice.between(5, if twice { 60_000 } else { 200 });
            let letter = Letter {
                id,
                text: text.into(),
                attempts: 0,
                visible_at_ms: world.executor.now_ms() + delay_ms,
                about: about.clone(),
            };
            queue.put(letter);
        }
    }

    /// Delivers again what was not acknowledged, or moves it to the dead letters.
    fn retry(&self, world: &World, number: usize, mut letter: Letter, delay_seconds: u32) {
        let queue = self.queue(number);
        let event = letter.about.as_ref().map(|about| about.event);
        if letter.attempts <= queue.settings.max_retries {
            letter.visible_at_ms = world.executor.now_ms() + i64::from(delay_seconds) * 1_000;
            return queue.put(letter);
        }
        letter.attempts = 0;
        letter.visible_at_ms = world.executor.now_ms();
        match queue.dead_letters.and_then(|at| self.queues.get(at)) {
            Some(dead) => {
                world.note(0, event, || format!("the platform moved m{} to {}", letter.id, dead.name));
                if let Some(about) = &letter.about {
                    world.witness.borrow_mut().queue_took(about, true);
                }
                dead.put(letter);
            }
            None => {
                let text = format!("{} deleted m{} at its retry limit", queue.name, letter.id);
                world.note(0, event, || text.clone());
                world.violation("dead letters", event, text);
            }
        }
    }
}

impl Queue {
    fn put(&self, letter: Letter) {
        self.letters.borrow_mut().push(letter);
        self.signal.raise();
    }

    /// When the next message may be delivered.
    fn next_at_ms(&self) -> Option<i64> {
        let busy = self.batches.get() >= self.settings.concurrency;
        if busy { None } else { self.letters.borrow().iter().map(|letter| letter.visible_at_ms).min() }
    }

    /// Takes the next batch: the oldest messages, or any.
    fn take(&self, world: &World) -> Vec<Letter> {
        let now_ms = world.executor.now_ms();
        let mut letters = self.letters.borrow_mut();
        let mut visible: Vec<usize> =
            (0..letters.len()).filter(|at| letters[*at].visible_at_ms <= now_ms).collect();
        if visible.len() > 1 && world.faults.strikes(|weather| weather.reordered, FaultKind::Reordered) {
            for at in (1..visible.len()).rev() {
                visible.swap(at, world.dice.below(at + 1));
            }
        }
        visible.truncate(self.settings.batch_max);
        let mut taken: Vec<Letter> = visible.iter().map(|at| letters[*at].clone()).collect();
        visible.sort_unstable();
        for at in visible.into_iter().rev() {
            letters.remove(at);
        }
        for letter in &mut taken {
            letter.attempts += 1;
        }
        taken
    }
}

/// The dispatch that a message or a letter is about, as anybody can read in it.
fn about(world: &World, text: &str) -> Option<About> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Named {
        tenant_id: String,
        event_id: String,
        topic: String,
        #[serde(default)]
        replay: u32,
    }
    let inner = serde_json::from_str::<DeadLetter>(text).map(|letter| letter.message);
    let named: Named = serde_json::from_str(inner.as_deref().unwrap_or(text)).ok()?;
    let event = world.witness.borrow().event_no(&named.tenant_id, &named.event_id)?;
    Some(About { event, topic: named.topic, generation: named.replay })
}

fn shown(about: &Option<About>) -> String {
    match about {
        Some(about) => format!("to {} (generation {})", about.topic, about.generation),
        None => "that is not ours".to_owned(),
    }
}
