//! Chance, all of it from one seed.

use std::cell::RefCell;

use fastrand::Rng;

/// Draws that follow from a seed. Everything that happens in a world draws from the same one, in the order it happens.
#[derive(Debug)]
pub struct Dice(RefCell<Rng>);

impl Dice {
    /// Dice that always fall the same way for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(RefCell::new(Rng::with_seed(seed)))
    }

    /// Whether something of this probability happens.
    pub fn chance(&self, probability: f64) -> bool {
        // No draw for what never happens, so that a fault that is switched off leaves no trace in the sequence.
        probability > 0.0 && self.0.borrow_mut().f64() < probability
    }

    /// A number in 0..n, and 0 if n is 0.
    pub fn below(&self, n: usize) -> usize {
        if n <= 1 { 0 } else { self.0.borrow_mut().usize(..n) }
    }

    /// A number from `low` up to and including `high`.
    pub fn between(&self, low: i64, high: i64) -> i64 {
        if high <= low { low } else { self.0.borrow_mut().i64(low..=high) }
    }

    /// One of the items.
    pub fn pick<'a, T>(&self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    /// A number between two bounds.
    pub fn fraction(&self, low: f64, high: f64) -> f64 {
        low + self.0.borrow_mut().f64() * (high - low)
    }

    /// Any number at all.
    pub fn number(&self) -> u64 {
        self.0.borrow_mut().u64(..)
    }
}

/// The seed of one part of something that has a seed: worlds of a run, fresh seeds of a time. Close numbers give seeds that
/// have nothing in common.
pub fn derive(seed: u64, part: u64) -> u64 {
    let mut mixed = seed.wrapping_add(part.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
