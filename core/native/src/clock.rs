//! A clock that only moves when it is told to.

use std::cell::Cell;
use std::rc::Rc;

use swarm_domain::ports::Clock;
use swarm_domain::time::Timestamp;

use crate::run::yield_now;

/// The time, in the hands of a test.
#[derive(Clone, Debug)]
pub struct ManualClock(Rc<Cell<Timestamp>>);

impl ManualClock {
    /// A clock that shows `start`.
    pub fn new(start: Timestamp) -> Self {
        Self(Rc::new(Cell::new(start)))
    }

    /// Moves the clock, forwards or (as real ones do when they are corrected) backwards.
    pub fn advance_ms(&self, ms: i64) {
        self.0.set(self.now().plus_ms(ms));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.0.get()
    }

    /// Nobody else moves the clock, so who sleeps moves it, and lets the others have a turn.
    async fn sleep_ms(&self, ms: u64) {
        self.advance_ms(i64::try_from(ms).unwrap_or(i64::MAX));
        yield_now().await;
    }
}
