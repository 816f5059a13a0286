//! `swarm dlq list`: incidents by filter, page by page.

use clap::Args;

use super::show;
use crate::arguments::Globals;
use crate::arguments::filter::FilterArguments;
use crate::arguments::values;
use crate::failure::Failure;
use crate::listing::{Listing, PageArguments};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  swarm dlq list --status open
  swarm dlq list --status open,triaged --topic billing.events --since 2h
  swarm dlq list --error timeout --all --json";

/// Which incidents, and how many.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct List {
    /// Only in these states.
    #[arg(long, value_delimiter = ',', value_parser = values::state())]
    status: Vec<String>,
    #[command(flatten)]
    filter: FilterArguments,
    #[command(flatten)]
    pages: PageArguments,
}

impl List {
    /// Lists the incidents.
    pub fn run(self, globals: &Globals) -> Result<(), Failure> {
        let filter = self.filter.with_states(self.status)?;
        let listing = Listing { one: "incident", many: "incidents", table: show::table };
        listing.run(self.pages, &mut Session::open(globals)?, |api, limit, cursor| {
            api.incidents(&filter, limit, cursor)
        })
    }
}
