//! What happened, in order: enough to read how one event fared, and a hash that tells two runs apart.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt::Write as _;

use swarm_domain::time::Timestamp;

use crate::witness::EventNo;

/// Who did something. 0 is the world itself.
pub type ProcessId = u64;

struct Entry {
    at_ms: i64,
    process: ProcessId,
    event: Option<EventNo>,
    text: String,
}

/// Everything that happened in a world.
pub struct Trace {
    entries: RefCell<Vec<Entry>>,
    hash: Cell<u64>,
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

impl Default for Trace {
    fn default() -> Self {
        Self { entries: RefCell::default(), hash: Cell::new(FNV_OFFSET) }
    }
}

impl Trace {
    /// Writes down what happened.
    pub fn push(&self, at_ms: i64, process: ProcessId, event: Option<EventNo>, text: String) {
        let mut hash = self.hash.get();
        let numbers = [at_ms as u64, process, event.map_or(u64::MAX, u64::from)];
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).chain(text.bytes());
        for byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        }
        self.hash.set(hash);
        self.entries.borrow_mut().push(Entry { at_ms, process, event, text });
    }

    /// Tells apart runs that differ in anything.
    pub fn hash(&self) -> u64 {
        self.hash.get()
    }

    /// Everything that touched the event, and whatever else befell the runs that did.
    pub fn of_event(&self, event: EventNo) -> String {
        let entries = self.entries.borrow();
        let of_event = entries.iter().filter(|entry| entry.event == Some(event));
        let processes: BTreeSet<_> = of_event.map(|e| e.process).filter(|process| *process != 0).collect();
        let touching = |entry: &&Entry| match entry.event {
            Some(other) => other == event,
            None => processes.contains(&entry.process),
        };
        lines(entries.iter().filter(touching))
    }

    /// The last things that happened, for a fault that concerns no event.
    pub fn tail(&self, count: usize) -> String {
        let entries = self.entries.borrow();
        lines(entries.iter().skip(entries.len().saturating_sub(count)))
    }
}

fn lines<'a>(entries: impl Iterator<Item = &'a Entry>) -> String {
    let mut text = String::new();
    for Entry { at_ms, process, text: what, .. } in entries {
        let at = Timestamp::from_unix_ms(*at_ms);
        let who = if *process == 0 { String::new() } else { format!("#{process}") };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {at}  {who:>7}  {what}");
    }
    text
}
