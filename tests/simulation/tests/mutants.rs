//! Every mutant is caught, by a checker that looks at the rule that it lacks.

#![allow(clippy::unwrap_used, clippy::panic)]

use swarm_simulation::mutants::{Mutant, all};
use swarm_simulation::run::world;

/// How many worlds a mutant may survive.
const WORLDS: u64 = 40;
const EVENTS: usize = 400;

/// The first seed under which a checker catches the mutant, with the checker's name.
fn caught(mutant: &Mutant) -> Option<(u64, &'static str)> {
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
    let caught: Vec<_> = std::thread::scope(|scope| {
        let half = mutants.len().div_ceil(2);
        let threads: Vec<_> = mutants
            .chunks(half)
            .map(|part| scope.spawn(|| part.iter().map(|m| (m.name, caught(m))).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut survivors = Vec::new();
    for (name, by) in caught {
        match by {
            Some((seed, checker)) => println!("{name:60} seed {seed:2}  {checker}"),
            None => survivors.push(name),
        }
    }
    assert!(survivors.is_empty(), "not caught: {survivors:#?}");
}
