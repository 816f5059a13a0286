//! Every step of every path goes wrong in every way, once.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::atomic::{AtomicUsize, Ordering};

use swarm_simulation::exhaustive::{FATES, Path, go, paths};
use swarm_simulation::report::failure;

/// Paths that are gone at once.
const THREADS: usize = 2;
/// A path that goes on for ever is a fault as well.
const STEPS_MAX: usize = 200;

/// Lets every step of a path go wrong in every way, and tells how many there were.
fn go_wrong(path: &Path) -> usize {
    let mut steps = 0;
    for fate in FATES {
        for step in 0.. {
            assert!(step < STEPS_MAX, "{} has no end", path.name);
            let outcome = go(path, step, fate).unwrap();
            let place = format!("{}, step {step}: {fate:?}", path.name);
            assert!(outcome.report.violations.is_empty(), "{place}\n{}", failure(&outcome.report, &place));
            if !outcome.reached {
                break;
            }
            steps += 1;
        }
    }
    assert!(steps > 0, "{} has no step", path.name);
    steps
}

#[test]
fn every_step_of_every_path_may_go_wrong() {
    let paths = paths();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    println!("{}: {} steps went wrong", path.name, go_wrong(path));
                }
            });
        }
    });
}
