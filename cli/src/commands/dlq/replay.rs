//! `swarm dlq replay`: either the incidents that are named, or all that filters match. Which of the two is meant must be
//! plain, because the second can be a hundred thousand.

use clap::Args;
use swarm_domain::incident::FilterInput;
use swarm_domain::replay::Of;

use super::decide::{Verb, each};
use crate::api::ReplayOfMany;
use crate::arguments::filter::FilterArguments;
use crate::arguments::{Globals, values};
use crate::commands::replays::{Many, Pace};
use crate::failure::Failure;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  swarm dlq replay inc_0123456789abcdef0123456789abcdef
  swarm dlq replay --tenant acme --topic billing.events
  swarm dlq replay --topic billing.events --error timeout --since 2h --dry-run
  swarm dlq replay --all --rate 200 --yes";

/// Which incidents, and how.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Replay {
    /// Ids of incidents; or else give filters.
    #[arg(value_name = "INCIDENT_ID", value_parser = values::id)]
    incidents: Vec<String>,
    #[command(flatten)]
    filter: FilterArguments,
    /// Only in these states; both of them if not given.
    #[arg(long, value_delimiter = ',', value_parser = values::replayable_state())]
    status: Vec<String>,
    /// Every incident that is open or triaged.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    pace: Pace,
}

impl Replay {
    /// Replays one by one, or all at once.
    pub fn run(self, globals: &Globals) -> Result<(), Failure> {
        let filter = self.filter.with_states(self.status)?;
        let has_filter = filter != FilterInput::default();
        if !self.incidents.is_empty() {
            if has_filter || self.all || self.pace.rate.is_some() || self.pace.dry_run {
                return Err(Failure::usage(
                    "incident ids go with no filter, --all, --rate or --dry-run: leave those out to replay the incidents \
                     named, or leave the ids out to replay what the filter matches",
                ));
            }
            return each(Verb::Replay, &self.incidents, None, &mut Session::open(globals)?);
        }
        match (has_filter, self.all) {
            (true, true) => Err(Failure::usage(
                "--all goes with no filter: leave --all out to replay what the filter matches, or leave the filter out \
                 to replay every incident",
            )),
            (false, false) => Err(Failure::usage(
                "nothing says what to replay: give ids of incidents, or a filter such as --tenant or --topic, or --all",
            )),
            (_, all) => {
                let rate_per_second = self.pace.rate;
                let wanted = ReplayOfMany { of: Of::Incidents, filter, topics: None, all, rate_per_second };
                Many { wanted, pace: self.pace }.run(globals)
            }
        }
    }
}
