//! A replay of many: counted first, confirmed, then driven to its end. What may take hours is the gateway's to remember, so
//! that nothing is lost if this program ends before.

use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::api::ReplayOfMany;
use crate::arguments::Globals;
use crate::arguments::filter::in_words;
use crate::commands::replays;
use crate::confirm;
use crate::failure::{Failure, Kind};
use crate::interrupt;
use crate::job::{self, Job};
use crate::notes;
use crate::output::escape;
use crate::output::numbers::{count, thousands};
use crate::session::Session;

/// A replay of many that was asked for.
pub struct Many {
    /// What is to be replayed.
    pub wanted: ReplayOfMany,
    /// How fast that will be, at most.
    pub rate: u32,
    /// Whether only to count.
    pub dry_run: bool,
    /// Whether nobody is asked.
    pub yes: bool,
}

#[derive(Serialize)]
struct Count {
    count: u64,
}

impl Many {
    /// Counts, asks, creates the replay and drives it.
    pub fn run(self, globals: &Globals) -> Result<(), Failure> {
        let mut session = Session::open(globals)?;
        let matching = session.api.count(&self.wanted)?;
        let what =
            format!("{} ({})", count(matching, "incident", "incidents"), in_words(&self.wanted.filter));
        if self.dry_run || matching == 0 {
            return show_count(&mut session, matching, &what);
        }
        if !self.yes {
            self.confirm(&mut session, matching, &what)?;
        }
        interrupt::take_over()?;
        interrupt::say("the replay may have been created: `swarm replays list` shows it", None);
        let replay = session.api.create_replay(&self.wanted).map_err(|failure| match failure.kind() {
            Kind::Unavailable => {
                failure.and("it may have been created all the same: `swarm replays list` shows it")
            }
            _ => failure,
        })?;
        notes::note(&format!("replay {}: {what}", replay.value.replay_id));
        let id = replay.value.replay_id.clone();
        let ended = Job::of(replay).until_ended(|| session.api.run_replay(&id))?;
        replays::show_one(&mut session, &ended)?;
        job::outcome(&ended.value)
    }

    fn confirm(&self, session: &mut Session, matching: u64, what: &str) -> Result<(), Failure> {
        if !confirm::can_ask() {
            show_count(session, matching, what)?;
            return Err(Failure::new(
                Kind::Refused,
                "nothing was replayed, as nobody could confirm it: add --yes",
            ));
        }
        let rate = thousands(self.rate.into());
        if confirm::ask(&format!("Replay {}, at most {rate} a second?", escape::line(what))) {
            return Ok(());
        }
        Err(Failure::new(Kind::Refused, "nothing was replayed"))
    }
}

fn show_count(session: &mut Session, matching: u64, what: &str) -> Result<(), Failure> {
    if session.out.is_json() {
        let document = to_raw_value(&Count { count: matching })
            .map_err(|error| Failure::unexpected(format!("could not write the count: {error}")))?;
        return session.out.json(&document);
    }
    session.out.text(&format!("{}\n", escape::line(what)))
}
