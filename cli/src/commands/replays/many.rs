//! A replay of many: counted first, confirmed, then driven to its end. What may take hours is the gateway's to remember, so
//! that nothing is lost if this program ends before.

use serde::Serialize;
use serde_json::value::to_raw_value;

use clap::Args;
use swarm_domain::limits::{REPLAY_RATE_PER_SECOND_DEFAULT, REPLAY_RATE_PER_SECOND_MAX};
use swarm_domain::replay::Of;

use super::show::show_one;
use crate::api::ReplayOfMany;
use crate::arguments::Globals;
use crate::arguments::filter::in_words;
use crate::confirm;
use crate::failure::{Failure, Kind};
use crate::interrupt;
use crate::job::{self, Job};
use crate::notes;
use crate::output::escape;
use crate::output::numbers::{count, thousands};
use crate::session::Session;

/// How a replay of many goes about it.
#[derive(Args)]
pub struct Pace {
    /// At most this many a second.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(REPLAY_RATE_PER_SECOND_MAX)))]
    pub rate: Option<u32>,
    /// Say how many it would be, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
}

/// A replay of many that was asked for.
pub struct Many {
    /// What is to be replayed; its rate is that of the pace.
    pub wanted: ReplayOfMany,
    /// How.
    pub pace: Pace,
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
        let what = self.in_words(matching);
        if self.pace.dry_run || matching == 0 {
            return show_count(&mut session, matching, &what);
        }
        if !self.pace.yes {
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
        show_one(&mut session, &ended)?;
        job::outcome(&ended.value)
    }

    /// `3 incidents (tenant acme)`, `3 sends (type shop.order) to billing.events`.
    fn in_words(&self, matching: u64) -> String {
        let filter = in_words(&self.wanted.filter);
        match (self.wanted.of, &self.wanted.topics) {
            (Of::Incidents, _) => format!("{} ({filter})", count(matching, "incident", "incidents")),
            (Of::Events, topics) => {
                let topics = topics.as_deref().unwrap_or_default().join(", ");
                format!("{} of events ({filter}) to {topics}", count(matching, "send", "sends"))
            }
        }
    }

    fn confirm(&self, session: &mut Session, matching: u64, what: &str) -> Result<(), Failure> {
        if !confirm::can_ask() {
            show_count(session, matching, what)?;
            return Err(Failure::new(
                Kind::Refused,
                "nothing was replayed, as nobody could confirm it: add --yes",
            ));
        }
        let rate = thousands(self.pace.rate.unwrap_or(REPLAY_RATE_PER_SECOND_DEFAULT).into());
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
