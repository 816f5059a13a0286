//! What an outsider knows: what clients were told, what handlers did, what queues took, and every change of every row. The
//! gateway reads nothing of this; the checkers read nothing else.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use swarm_domain::event::EventInput;

use crate::checkers::archive::Archived;
use crate::trace::ProcessId;
use crate::watch::{DispatchRow, IncidentRow};

/// The number of an event in its world.
pub type EventNo = u32;

/// What a message is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The event.
    pub event: EventNo,
    /// The topic.
    pub topic: String,
    /// Which repetition.
    pub generation: u32,
}

/// One thing that must never be.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Which checker saw it.
    pub checker: &'static str,
    /// Which event it happened to.
    pub event: Option<EventNo>,
    /// What was seen.
    pub text: String,
}

/// How a handler fares with an event, until the calm heals it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poison {
    /// Nothing is wrong with it.
    None,
    /// Fails for good.
    Permanent,
    /// Fails as long as the storm lasts.
    Transient,
    /// Ends the isolate.
    Panic,
    /// Never comes back.
    Hang,
    /// Its effect is refused.
    Effect,
}

/// What is known of one repetition of a dispatch.
#[derive(Clone, Debug, Default)]
pub struct Repetition {
    /// Messages that the topic's queue took.
    pub sent: u32,
    /// Letters that the dead-letter queue took.
    pub letters: u32,
    /// Starts of the handler.
    pub starts: u32,
    /// Runs whose handler is at work now.
    pub running: BTreeSet<ProcessId>,
    /// Handlers that said that they are done.
    pub handled: u32,
    /// Times that `delivered` was committed.
    pub delivered: u32,
    /// Effects that were committed.
    pub effects: u32,
}

/// What is known of a dispatch.
#[derive(Clone, Debug, Default)]
pub struct DispatchFacts {
    /// Its row.
    pub row: Option<DispatchRow>,
    /// When its lease was last given back, and by whom.
    pub freed: Option<(i64, ProcessId)>,
    /// Its incident's row.
    pub incident: Option<IncidentRow>,
    /// Its repetitions.
    pub repetitions: BTreeMap<u32, Repetition>,
}

impl DispatchFacts {
    /// What is known of one repetition.
    pub fn repetition(&mut self, generation: u32) -> &mut Repetition {
        self.repetitions.entry(generation).or_default()
    }
}

/// What is known of an event.
#[derive(Clone, Debug)]
pub struct EventFacts {
    /// Its tenant.
    pub tenant: String,
    /// Its id.
    pub id: String,
    /// How its client publishes it.
    pub input: EventInput,
    /// The topics that its routes name.
    pub topics: Vec<String>,
    /// The hashes of all payloads that came under this id.
    pub offered: Vec<String>,
    /// Whether a client was told that it is recorded.
    pub acknowledged: bool,
    /// Whether a client is still waiting to be told.
    pub wanted: bool,
    /// The hash of the payload in its ledger row.
    pub stored: Option<String>,
    /// How often its ledger row was made.
    pub recorded: u32,
    /// How often its ledger row was deleted.
    pub deleted: u32,
    /// What handlers make of it.
    pub poison: Poison,
    /// Its dispatches.
    pub dispatches: BTreeMap<String, DispatchFacts>,
}

/// Everything that an outsider knows of a world.
#[derive(Default)]
pub struct Witness {
    /// The events, by number.
    pub events: Vec<EventFacts>,
    numbers: HashMap<(String, String), EventNo>,
    /// Incidents of foreign messages, by id.
    pub foreign: BTreeMap<String, IncidentRow>,
    /// Foreign messages that a dead-letter queue took.
    pub strangers: BTreeSet<String>,
    /// The dispatches of incidents, by the incident's id.
    pub incidents: BTreeMap<String, (EventNo, String)>,
    /// Operations whose operator was told that they are done.
    pub operations: BTreeSet<String>,
    /// Lines of the operators' log.
    pub logged: BTreeSet<String>,
    /// Incidents in the order in which they came.
    pub incident_order: Vec<String>,
    /// Alerts, and whether they were sent.
    pub alerts: BTreeMap<String, bool>,
    /// Of how many incidents the alerts to a sink tell.
    pub told: BTreeMap<String, u64>,
    /// How many incidents were marked as told of.
    pub marked: u64,
    /// How often a sink was told something.
    pub posts: BTreeMap<String, u64>,
    /// What is in the archive.
    pub archived: Archived,
    /// What must never be, and was.
    pub violations: Vec<Violation>,
}

impl Witness {
    /// An event that a client is about to publish.
    pub fn announce(&mut self, facts: EventFacts) -> EventNo {
        let number = self.events.len() as EventNo;
        self.numbers.insert((facts.tenant.clone(), facts.id.clone()), number);
        self.events.push(facts);
        number
    }

    /// The number of an event.
    pub fn event_no(&self, tenant: &str, id: &str) -> Option<EventNo> {
        self.numbers.get(&(tenant.to_owned(), id.to_owned())).copied()
    }

    /// What is known of an event.
    pub fn event(&mut self, number: EventNo) -> &mut EventFacts {
        // Numbers come from this witness alone.
        &mut self.events[number as usize]
    }

    /// What is known of a dispatch.
    pub fn dispatch(&mut self, event: EventNo, topic: &str) -> &mut DispatchFacts {
        let dispatches = &mut self.event(event).dispatches;
        if !dispatches.contains_key(topic) {
            dispatches.insert(topic.to_owned(), DispatchFacts::default());
        }
        dispatches.entry(topic.to_owned()).or_default()
    }

    /// An operator was told that an operation is done.
    pub fn operation_done(&mut self, op_id: &str) {
        self.operations.insert(op_id.to_owned());
    }

    /// A queue took a message or a letter.
    pub fn queue_took(&mut self, about: &About, is_letter: bool) {
        let repetition = self.dispatch(about.event, &about.topic).repetition(about.generation);
        if is_letter {
            repetition.letters += 1;
        } else {
            repetition.sent += 1;
        }
    }
}
