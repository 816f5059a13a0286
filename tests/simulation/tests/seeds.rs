//! Worlds of a fixed list of seeds, and of a few fresh ones, which are printed.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::{SystemTime, UNIX_EPOCH};

use swarm_simulation::dice::derive;
use swarm_simulation::report::failure;
use swarm_simulation::run::{Run, WORLD_EVENTS, world};

const FIXED: [u64; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
const FRESH: u64 = 6;
const EVENTS: usize = 500;

/// Worlds of `WORLD_EVENTS` events that once found something:
/// - an event whose incident was ignored was repeated with others and delivered, and then somebody could take the incident up;
/// - a payload that could not be read made the ledger forget how often its handler had been started in vain.
const FOUND: [u64; 2] = [5_000_015_991_703_811_529, 14_529_755_077_171_123_794];

fn assert_holds(seed: u64, events: usize) {
    let report = world(seed, events, None);
    let command = format!("cargo xtask simulate --seed {seed} --events {events}");
    assert!(report.violations.is_empty(), "{}", failure(&report, &command));
    assert_eq!(report.acknowledged, events as u64);
}

#[test]
fn fixed_seeds_hold() {
    FIXED.into_iter().for_each(|seed| assert_holds(seed, EVENTS));
}

#[test]
fn what_once_found_something_holds() {
    FOUND.into_iter().for_each(|seed| assert_holds(seed, WORLD_EVENTS));
}

#[test]
fn fresh_seeds_hold() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    for number in 0..FRESH {
        let seed = derive(now, number) >> 32;
        println!("fresh seed {seed}");
        assert_holds(seed, EVENTS);
    }
}

#[test]
fn the_same_seed_gives_the_same_run_to_the_last_entry_of_its_trace() {
    for seed in [1, 77] {
        let (first, second) = (world(seed, 300, None), world(seed, 300, None));
        assert_eq!(first.hash, second.hash);
        assert_eq!((first.simulated_ms, first.faults), (second.simulated_ms, second.faults));
    }
    assert_ne!(world(1, 300, None).hash, world(2, 300, None).hash);
}

#[test]
fn threads_change_nothing() {
    let totals = |threads| {
        let mut seeds = Vec::new();
        let totals = Run { seed: 5, events: 4_100, threads }.run(|report| {
            seeds.push(report.seed);
            true
        });
        (totals.hash, totals.events, seeds)
    };
    assert_eq!(totals(1), totals(3));
}
