//! Watching a replay of many until it ends. It belongs to the gateway: whatever happens here, it goes on there, and its
//! sweeper moves it when nobody else does.

use std::thread;
use std::time::{Duration, Instant};

use crate::api::{Record, Replay};
use crate::failure::{Failure, Kind};
use crate::interrupt;
use crate::notes;
use crate::output::numbers::thousands;
use crate::progress::Progress;

/// How often the gateway is asked at most.
const PACE: Duration = Duration::from_secs(1);

/// How long to wait after each failure in a row before asking again; after the last one it is given up.
const PATIENCE: [Duration; 4] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];

/// A replay that is being watched.
pub struct Job {
    replay: Record<Replay>,
    progress: Progress,
}

impl Job {
    /// Begins to watch a replay.
    pub fn of(replay: Record<Replay>) -> Self {
        let progress = Progress::towards(replay.value.total, unit(&replay.value));
        interrupt::say(&last_words(&replay.value.replay_id), Some(&progress));
        Self { replay, progress }
    }

    /// Asks how far it is until it has ended.
    pub fn until_ended(
        mut self,
        mut ask: impl FnMut() -> Result<Record<Replay>, Failure>,
    ) -> Result<Record<Replay>, Failure> {
        self.show();
        let mut patience = PATIENCE.into_iter();
        while self.replay.value.is_running() {
            let asked = Instant::now();
            let failure = match ask() {
                Ok(replay) => {
                    self.replay = replay;
                    self.show();
                    patience = PATIENCE.into_iter();
                    if self.replay.value.is_running() {
                        thread::sleep(PACE.saturating_sub(asked.elapsed()));
                    }
                    continue;
                }
                Err(failure) => failure,
            };
            let pause = patience.next().filter(|_| failure.kind() == Kind::Unavailable);
            let Some(pause) = pause else {
                self.progress.stop();
                return Err(failure.and(&last_words(&self.replay.value.replay_id)));
            };
            self.progress.around(|| notes::note(&format!("{}; trying again", failure.message())));
            thread::sleep(pause);
        }
        self.progress.clear();
        Ok(self.replay)
    }

    fn show(&self) {
        let replay = &self.replay.value;
        self.progress.at(replay.done(), Some(replay.total.max(replay.done())));
    }
}

/// Tells how a replay ended. One that was cancelled did not do what was asked for.
pub fn outcome(replay: &Replay) -> Result<(), Failure> {
    let left_alone = match replay.skipped {
        0 => String::new(),
        skipped => format!("; {} had changed meanwhile or had nothing to send", thousands(skipped)),
    };
    let told = format!("replayed {} of {}{left_alone}", thousands(replay.moved), thousands(replay.total));
    if replay.is_cancelled() {
        return Err(Failure::new(Kind::Refused, format!("the replay was cancelled: {told}")));
    }
    notes::note(&told);
    Ok(())
}

fn unit(replay: &Replay) -> &'static str {
    if replay.of == "events" { "events" } else { "incidents" }
}

fn last_words(id: &str) -> String {
    format!(
        "the replay goes on: follow it with `swarm replays follow {id}`, stop it with `swarm replays cancel {id}`"
    )
}
