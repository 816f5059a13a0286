//! What a world is made of: all of it follows from its seed.

use swarm_domain::alert::{Sink, parse_sinks};
use swarm_domain::retention::Periods;
use swarm_domain::routing::Routes;
use swarm_domain::topic::Topic;

use crate::broker::{Purpose, QueueSettings};
use crate::dice::Dice;
use crate::faults::{Outage, Port, Weather};

/// 2026-01-01, when every world begins.
pub const START_MS: i64 = 1_767_225_600_000;
/// A minute of a world's time.
pub const MINUTE_MS: i64 = 60_000;
/// A day of a world's time.
pub const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// The topics that have a queue.
const TOPICS: [&str; 4] = ["billing.events", "audit.events", "crm.sync", "mail.out"];
/// A topic that routes name and nobody has bound.
pub const UNBOUND: &str = "unbound.events";

const ROUTES: &str = r#"[
    {"match": "shop.order.*", "topics": ["billing.events", "audit.events"]},
    {"match": "shop.**", "topics": ["audit.events"]},
    {"match": "crm.**", "topics": ["crm.sync"]},
    {"match": "crm.lead.*", "topics": ["mail.out", "audit.events", "billing.events"]},
    {"match": "lost.**", "topics": ["unbound.events", "mail.out"]}
]"#;

/// Types, the common ones more than once. The last one goes nowhere.
pub const TYPES: [&str; 10] = [
    "shop.order.paid",
    "shop.order.sent",
    "shop.order.paid",
    "shop.visit",
    "shop.visit",
    "crm.note.added",
    "crm.note.added",
    "crm.lead.won",
    "lost.parcel",
    "void.nothing",
];

/// Everything about a world that is decided before it begins.
#[derive(Debug)]
pub struct Plan {
    /// How many events clients publish.
    pub events: usize,
    /// Databases of the ledger.
    pub shards: usize,
    /// Tenants.
    pub tenants: Vec<String>,
    /// Where types go.
    pub routes: Routes,
    /// How queues are run.
    pub queues: Vec<QueueSettings>,
    /// What goes wrong.
    pub weather: Weather,
    /// How long each storm lasts.
    pub storm_ms: i64,
    /// How long after a send a dispatch is looked at again.
    pub in_transit_deadline_ms: i64,
    /// Whether a second storm comes when the first one's events are old enough for the archive.
    pub second_storm: bool,
    /// How long events are kept.
    pub periods: Periods,
    /// How often the cron of alerts comes.
    pub alerts_every_ms: i64,
    /// Where alerts go.
    pub sinks: Vec<Sink>,
    /// Of handlers: failures that pass.
    pub handler_transient: f64,
    /// Of handlers: ones that take minutes.
    pub handler_slow: f64,
    /// Of events: poison of any kind.
    pub poisoned: f64,
    /// Of events: large payloads.
    pub large: f64,
    /// Of events: published once more by their client after it was told that they are recorded.
    pub repeated: f64,
}

impl Plan {
    /// The plan of a world with that many events.
    pub fn draw(dice: &Dice, events: usize) -> Self {
        let tenants = (0..dice.between(2, 7)).map(|number| format!("tenant-{number}")).collect();
        Self {
            events,
            shards: 1 + dice.below(3),
            tenants,
            routes: routes(),
            queues: queues(dice),
            weather: Weather::draw(dice),
            storm_ms: dice.between(40, 150) * MINUTE_MS,
            in_transit_deadline_ms: dice.between(25, 90) * MINUTE_MS,
            second_storm: dice.chance(0.6),
            periods: periods(),
            alerts_every_ms: MINUTE_MS,
            sinks: sinks(),
            handler_transient: dice.fraction(0.0, 0.08),
            handler_slow: dice.fraction(0.0, 0.03),
            poisoned: dice.fraction(0.0, 0.05),
            large: 0.004,
            repeated: dice.fraction(0.02, 0.2),
        }
    }

    /// A plan without chance, for the exhaustive loop: nothing fails but what its script says.
    pub fn still() -> Self {
        let quiet = Dice::new(1);
        Self {
            events: 0,
            shards: 2,
            tenants: vec!["tenant-0".to_owned(), "tenant-1".to_owned()],
            routes: routes(),
            queues: queues(&quiet),
            weather: Weather::default(),
            storm_ms: 10 * MINUTE_MS,
            in_transit_deadline_ms: 30 * MINUTE_MS,
            second_storm: false,
            periods: periods(),
            alerts_every_ms: 5 * MINUTE_MS,
            sinks: sinks(),
            handler_transient: 0.0,
            handler_slow: 0.0,
            poisoned: 0.0,
            large: 0.0,
            repeated: 0.0,
        }
    }

    /// The topics that have a queue.
    pub fn topics(&self) -> Vec<Topic> {
        let topic = |queue: &QueueSettings| match &queue.purpose {
            Purpose::Topic(topic) => Some(topic.clone()),
            Purpose::DeadLetters(_) => None,
        };
        self.queues.iter().filter_map(topic).collect()
    }

    /// Spans of one storm during which a whole port is down: short ones often, and now and then one that outlasts every retry.
    pub fn outages(&self, dice: &Dice, from_ms: i64) -> Vec<Outage> {
        let mut ports: Vec<Port> = (0..self.shards).map(Port::Sql).collect();
        ports.extend((0..self.queues.len()).map(Port::Queue));
        ports.extend((0..self.queues.len()).map(Port::Delivery));
        ports.extend([Port::Blobs, Port::Sink]);
        let mut outages = Vec::new();
        for port in ports {
            if dice.chance(0.35) {
                // A queue that is not delivered for long makes old letters meet new generations.
                let long = dice.chance(if matches!(port, Port::Delivery(_)) { 0.5 } else { 0.15 });
                let minutes = if long { dice.between(40, 120) } else { dice.between(1, 15) };
                let begin_ms = from_ms + dice.between(0, self.storm_ms);
                outages.push(Outage { port, from_ms: begin_ms, until_ms: begin_ms + minutes * MINUTE_MS });
            }
        }
        outages
    }
}

/// A topic of this name; the names in this crate are all well-formed.
pub fn topic(name: &str) -> Topic {
    Topic::try_from(name.to_owned()).unwrap_or_else(|error| unreachable!("{error}"))
}

/// A day, and two for one of the tenants.
fn periods() -> Periods {
    Periods::parse(r#"{"default_days": 1, "tenants": {"tenant-0": 2}}"#).unwrap_or_default()
}

fn sinks() -> Vec<Sink> {
    let json = r#"[{"name": "chat", "kind": "slack", "url_secret": "CHAT"},
                   {"name": "pager", "kind": "webhook", "url_secret": "PAGER", "signing_secret": "KEY"}]"#;
    let secret = |name: &str| match name {
        "KEY" => Some(format!("whsec_{}", "c2ltdWxhdGlvbnNpbXVsYXRpb25zaW11bGF0aW9u")),
        _ => Some("https://sink.invalid/".to_owned()),
    };
    let configs = parse_sinks(json).unwrap_or_else(|error| unreachable!("{error}"));
    configs.iter().map(|config| config.resolve(secret)).collect()
}

fn routes() -> Routes {
    Routes::parse(ROUTES).unwrap_or_else(|error| unreachable!("{error}"))
}

fn queues(dice: &Dice) -> Vec<QueueSettings> {
    let topics = TOPICS.map(|name| QueueSettings {
        purpose: Purpose::Topic(topic(name)),
        batch_max: dice.between(1, 12) as usize,
        max_retries: dice.between(2, 5) as u32,
        retry_delay_seconds: dice.between(5, 30) as u32,
        batch_timeout_ms: dice.between(0, 3_000),
        concurrency: dice.between(1, 4) as usize,
    });
    let dead_letters = TOPICS.map(|name| QueueSettings {
        purpose: Purpose::DeadLetters(topic(name)),
        batch_max: dice.between(1, 20) as usize,
        max_retries: 100,
        retry_delay_seconds: 30,
        batch_timeout_ms: 5_000,
        concurrency: dice.between(1, 3) as usize,
    });
    topics.into_iter().chain(dead_letters).collect()
}
