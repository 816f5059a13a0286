//! Every two minutes: sends what an accepted event still owes to its topics.

use serde_json::json;
use swarm_cloudflare::clock::random_token;
use swarm_cloudflare::{Bindings, Misconfigured, SystemClock};
use swarm_domain::limits::{SUBREQUESTS_MAX, SWEEP_SECONDS_DEFAULT, SWEEP_SUBREQUESTS_DEFAULT};
use swarm_domain::ports::Clock;
use swarm_domain::sweep::{Budget, Sweeper, Swept};

use crate::LOG;

/// Runs the sweeper once, within `SWEEP_SECONDS` and `SWEEP_SUBREQUESTS`.
pub async fn run(bindings: &Bindings) -> Result<(), Misconfigured> {
    let seconds = bindings.number_var("SWEEP_SECONDS", SWEEP_SECONDS_DEFAULT)?;
    let calls = bindings.number_var("SWEEP_SUBREQUESTS", SWEEP_SUBREQUESTS_DEFAULT)?.min(SUBREQUESTS_MAX);
    let sweeper = Sweeper {
        ledger: &bindings.ledger()?,
        queues: &bindings.queues(),
        clock: &SystemClock,
        in_transit_deadline_ms: bindings.in_transit_deadline_ms()?,
    };
    let deadline = SystemClock.now().plus_ms(seconds.saturating_mul(1000));
    report(&sweeper.sweep(&random_token(), Budget::new(deadline, calls as usize)).await);
    Ok(())
}

fn report(swept: &Swept) {
    for error in &swept.errors {
        LOG.error("a part of the ledger could not be swept", json!({ "error": error.to_string() }));
    }
    let counts = json!({
        "enqueued": swept.enqueued,
        "failed": swept.failed,
        "abandoned": swept.abandoned,
        "archived": swept.archived,
    });
    if swept.failed + swept.abandoned > 0 {
        LOG.error("swept; some topics did not take their events", counts);
    } else {
        LOG.info("swept", counts);
    }
}
