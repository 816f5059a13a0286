//! The clock of one run, which may be off.

use std::rc::Rc;

use swarm_domain::ports::Clock;
use swarm_domain::time::Timestamp;

use crate::process::Process;

/// The time as one run sees it.
pub struct SimClock(pub Rc<Process>);

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(self.0.world.executor.now_ms() + self.0.skew_ms)
    }

    async fn sleep_ms(&self, ms: u64) {
        self.0.world.executor.sleep_ms(i64::try_from(ms).unwrap_or(i64::MAX)).await;
    }
}
