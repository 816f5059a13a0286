//! What came of worlds, and how it is told.

use crate::faults::FaultKind;
use crate::witness::Violation;

/// What came of one world.
#[derive(Clone, Debug)]
pub struct WorldReport {
    /// The world's own seed.
    pub seed: u64,
    /// Events that clients published.
    pub events: u64,
    /// Events that a client was told of.
    pub acknowledged: u64,
    /// Faults, in the order of [`FaultKind::ALL`].
    pub faults: Vec<u64>,
    /// How much time passed in it.
    pub simulated_ms: i64,
    /// Tells this run from others.
    pub hash: u64,
    /// What must never be, and was.
    pub violations: Vec<Violation>,
    /// The trace of the first violation.
    pub trace: String,
    /// What else is worth a line: how often things happened.
    pub figures: Vec<(&'static str, u64)>,
}

/// The sum of many worlds.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Worlds.
    pub worlds: u64,
    /// Events that clients published.
    pub events: u64,
    /// Events that a client was told of.
    pub acknowledged: u64,
    /// Faults, in the order of [`FaultKind::ALL`].
    pub faults: Vec<u64>,
    /// Time in all worlds together.
    pub simulated_ms: i64,
    /// Tells this run from others.
    pub hash: u64,
    /// Violations.
    pub violations: u64,
    /// How often things happened.
    pub figures: Vec<(&'static str, u64)>,
}

impl Totals {
    /// Adds a world. The order counts for the hash.
    pub fn add(&mut self, world: &WorldReport) {
        self.worlds += 1;
        self.events += world.events;
        self.acknowledged += world.acknowledged;
        self.simulated_ms += world.simulated_ms;
        self.violations += world.violations.len() as u64;
        self.hash = self.hash.rotate_left(5) ^ world.hash;
        self.faults.resize(FaultKind::ALL.len(), 0);
        for (sum, count) in self.faults.iter_mut().zip(&world.faults) {
            *sum += count;
        }
        for (name, count) in &world.figures {
            match self.figures.iter_mut().find(|(other, _)| other == name) {
                Some((_, sum)) => *sum += count,
                None => self.figures.push((name, *count)),
            }
        }
    }

    /// The figures as lines of text.
    pub fn lines(&self, real_seconds: f64) -> String {
        let mut lines = Vec::new();
        let mut line = |name: &str, value: String| lines.push(format!("  {name:<34} {value:>14}"));
        line("worlds", thousands(self.worlds));
        line("events", thousands(self.events));
        line("acknowledged", thousands(self.acknowledged));
        for (name, count) in &self.figures {
            line(name, thousands(*count));
        }
        line("faults injected", thousands(self.faults.iter().sum()));
        for (kind, count) in FaultKind::ALL.iter().zip(&self.faults).filter(|(_, count)| **count > 0) {
            line(&format!("  {}", kind.name()), thousands(*count));
        }
        line("simulated time", format!("{:.1} days", self.simulated_ms as f64 / 86_400_000.0));
        line("real time", format!("{real_seconds:.1} s"));
        line("trace hash", format!("{:016x}", self.hash));
        line("violations", thousands(self.violations));
        lines.join("\n")
    }
}

/// A number as people read it.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A world's violations with the trace of the first, and how to see them again.
pub fn failure(report: &WorldReport, command: &str) -> String {
    let mut text = format!("world {}: {} violations\n", report.seed, report.violations.len());
    for violation in report.violations.iter().take(5) {
        text.push_str(&format!("  [{}] {}\n", violation.checker, violation.text));
    }
    text.push_str("\nEverything that touched the event of the first one, in order:\n");
    text.push_str(&report.trace);
    text.push_str(&format!("\nRepeat with:\n  {command}\n"));
    text
}
