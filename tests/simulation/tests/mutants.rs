//! Every mutant is caught, by a checker that looks at the rule that it lacks.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use swarm_simulation::mutants::{Mutant, all};
use swarm_simulation::run::world;

/// How many worlds a mutant may survive.
const WORLDS: u64 = 40;
const EVENTS: usize = 400;
/// Mutants that are looked at at once.
const THREADS: usize = 2;

/// The first seed under which a checker catches the mutant, with the checker's name.
fn first_to_catch(mutant: &Mutant) -> Option<(u64, &'static str)> {
    (1..=WORLDS).find_map(|seed| {
        let report = world(seed, EVENTS, Some(mutant.clone()));
        let by = report.violations.iter().find(|violation| mutant.caught_by.contains(&violation.checker))?;
        Some((seed, by.checker))
    })
}

#[test]
fn what_mutants_take_away_stands_in_the_code() {
    let mutants = all();
    assert!(mutants.len() >= 12);
    for mutant in mutants {
        assert!(mutant.is_founded(), "{}: its text does not stand in the statement any more", mutant.name);
    }
}

#[test]
fn every_mutant_is_caught() {
    let mutants = all();
    let next = AtomicUsize::new(0);
    let caught = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let by = first_to_catch(mutant);
                    caught.lock().unwrap().insert(mutant.name, by);
                }
            });
        }
    });
    let mut survivors = Vec::new();
    for (name, by) in caught.into_inner().unwrap() {
        match by {
            Some((seed, checker)) => println!("{name:60} seed {seed:2}  {checker}"),
            None => survivors.push(name),
        }
    }
    assert!(survivors.is_empty(), "not caught: {survivors:#?}");
}
