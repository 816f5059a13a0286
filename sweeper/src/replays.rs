//! Every minute: works on the replays of many that operators have asked for.

use serde_json::json;
use swarm_cloudflare::clock::random_token;
use swarm_cloudflare::{Bindings, Misconfigured, SystemClock};
use swarm_domain::incident::OperationError;
use swarm_domain::join::join_all;
use swarm_domain::limits::REPLAY_SECONDS_DEFAULT;
use swarm_domain::ports::Clock;
use swarm_domain::replay::{Job, Jobs, Replayer};

use crate::LOG;

/// Runs all replays at once, each at its own pace, within `REPLAY_SECONDS`.
pub async fn run(bindings: &Bindings) -> Result<(), Misconfigured> {
    let seconds = bindings.number_var("REPLAY_SECONDS", REPLAY_SECONDS_DEFAULT)?;
    let deadline = SystemClock.now().plus_ms(seconds.saturating_mul(1000));
    let ledger = &bindings.ledger()?;
    let replayer = &Replayer {
        ledger,
        queues: &bindings.queues(),
        clock: &SystemClock,
        in_transit_deadline_ms: bindings.in_transit_deadline_ms()?,
    };
    match (Jobs { ledger }).running().await {
        Ok(running) => {
            let advances = running.iter().map(async |replay_id| {
                report(replay_id, replayer.advance(replay_id, &random_token(), deadline).await);
            });
            join_all(advances).await;
        }
        Err(error) => LOG.error("replays could not be looked up", json!({ "error": error.to_string() })),
    }
    Ok(())
}

fn report(replay_id: &str, answer: Result<Job, OperationError>) {
    match answer {
        Ok(job) => LOG.info(
            "worked on a replay",
            json!({
                "replayId": replay_id,
                "status": job.status.name(),
                "total": job.total,
                "moved": job.moved,
                "skipped": job.skipped,
            }),
        ),
        Err(error) => {
            LOG.error(
                "a replay stopped midway",
                json!({ "replayId": replay_id, "error": error.to_string() }),
            );
        }
    }
}
