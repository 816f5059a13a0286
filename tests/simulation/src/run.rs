//! Many worlds, each from its own part of the seed, on as many threads as there are cores. Reports come in order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::dice::derive;
use crate::mutants::Mutant;
use crate::report::{Totals, WorldReport};
use crate::world::World;

/// Events of one world.
pub const WORLD_EVENTS: usize = 2_000;

/// What a run is made of.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The seed of everything.
    pub seed: u64,
    /// Events in all worlds together.
    pub events: usize,
    /// Threads.
    pub threads: usize,
}

/// One world from its own seed.
pub fn world(seed: u64, events: usize, mutant: Option<Mutant>) -> WorldReport {
    match World::drawn(seed, events, mutant) {
        Ok(world) => {
            world.run();
            world.end(seed)
        }
        Err(error) => unreachable!("a world could not be set up: {error:?}"),
    }
}

impl Run {
    /// The worlds of this run: the seed and the events of each. A run of one world is that world, so that a world that failed
    /// can be run alone.
    pub fn worlds(&self) -> Vec<(u64, usize)> {
        if self.events <= WORLD_EVENTS {
            return vec![(self.seed, self.events)];
        }
        let count = self.events.div_ceil(WORLD_EVENTS);
        let events = |number: usize| WORLD_EVENTS.min(self.events - number * WORLD_EVENTS);
        (0..count).map(|number| (derive(self.seed, number as u64), events(number))).collect()
    }

    /// Runs all worlds, hands each report over in order, and stops early when `on_world` says so.
    pub fn run(&self, mut on_world: impl FnMut(&WorldReport) -> bool) -> Totals {
        let worlds = self.worlds();
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        let mut totals = Totals::default();
        std::thread::scope(|scope| {
            for _ in 0..self.threads.clamp(1, worlds.len()) {
                let sender = sender.clone();
                let (worlds, next) = (&worlds, &next);
                scope.spawn(move || {
                    while let Some((seed, events)) = worlds.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let at = worlds.iter().position(|(other, _)| other == seed);
                        if sender.send((at, world(*seed, *events, None))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let mut waiting = BTreeMap::new();
            let mut expected = 0;
            for (at, report) in receiver {
                waiting.insert(at.unwrap_or_default(), report);
                while let Some(report) = waiting.remove(&expected) {
                    expected += 1;
                    totals.add(&report);
                    if !on_world(&report) {
                        next.store(worlds.len(), Ordering::Relaxed);
                    }
                }
            }
        });
        totals
    }
}
