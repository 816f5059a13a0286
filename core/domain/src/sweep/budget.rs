//! What a run may use up: time, and calls that leave the Worker. The platform ends a run that makes too many.

use std::cell::Cell;

use crate::time::Timestamp;

/// The budget of one run, shared by all that it does at once.
#[derive(Debug)]
pub struct Budget {
    deadline: Timestamp,
    calls: Cell<usize>,
}

impl Budget {
    /// Nothing is begun after `deadline`, and never are more than `calls` calls of the ports made.
    pub fn new(deadline: Timestamp, calls: usize) -> Self {
        Self { deadline, calls: Cell::new(calls) }
    }

    /// Whether the time is over.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        now >= self.deadline
    }

    /// Takes calls out of the budget, all or none.
    pub(super) fn spend(&self, calls: usize) -> bool {
        let left = self.calls.get().checked_sub(calls);
        self.calls.set(left.unwrap_or(self.calls.get()));
        left.is_some()
    }

    /// Puts calls back that were kept for later.
    pub(super) fn give_back(&self, calls: usize) {
        self.calls.set(self.calls.get().saturating_add(calls));
    }
}
