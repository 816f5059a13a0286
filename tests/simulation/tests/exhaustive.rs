//! Every step of every path goes wrong in every way, once.

#![allow(clippy::unwrap_used, clippy::panic)]

use swarm_simulation::exhaustive::{FATES, go, paths};
use swarm_simulation::report::failure;

/// A path that goes on for ever is a fault as well.
const STEPS_MAX: usize = 200;

#[test]
fn every_step_of_every_path_may_go_wrong() {
    let mut tried = 0;
    for path in paths() {
        let mut steps = 0;
        for fate in FATES {
            for step in 0.. {
                assert!(step < STEPS_MAX, "{} has no end", path.name);
                let outcome = go(&path, step, fate).unwrap();
                let place = format!("{}, step {step}: {fate:?}", path.name);
                assert!(
                    outcome.report.violations.is_empty(),
                    "{place}\n{}",
                    failure(&outcome.report, &place)
                );
                if !outcome.reached {
                    break;
                }
                steps += 1;
            }
        }
        println!("{}: {steps} steps went wrong", path.name);
        assert!(steps > 0, "{} has no step", path.name);
        tried += steps;
    }
    println!("{tried} in all");
}
