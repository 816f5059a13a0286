//! `swarm events list`: events by filter, page by page.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use swarm_domain::events::EventFilterInput;
use swarm_domain::time::Timestamp;

use super::{EventFilterArguments, show};
use crate::arguments::{Globals, values};
use crate::failure::Failure;
use crate::listing::{Listing, PageArguments};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  swarm events list --tenant acme --type billing.invoice.paid --since 2h
  swarm events list --status dlq --topic billing.events
  swarm events list --id evt_1 --json";

/// Which events, and how many.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct List {
    #[command(flatten)]
    filter: EventFilterArguments,
    /// Only those that have this id; each tenant can have one.
    #[arg(long, value_parser = values::event_id)]
    id: Option<String>,
    /// Only those that go to this topic.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    topic: Option<String>,
    /// Only those that stand so as a whole.
    #[arg(long, value_delimiter = ',', value_parser = values::event_state())]
    status: Vec<String>,
    /// Only before this time.
    #[arg(long, value_name = "TIME", value_parser = values::moment)]
    until: Option<Timestamp>,
    #[command(flatten)]
    pages: PageArguments,
}

impl List {
    /// Lists the events.
    pub fn run(self, globals: &Globals) -> Result<(), Failure> {
        let filter = self.filter.checked(EventFilterInput {
            id: self.id,
            topic: self.topic,
            status: (!self.status.is_empty()).then_some(self.status),
            until: self.until.map(Timestamp::rfc3339),
            ..EventFilterInput::default()
        })?;
        let listing = Listing { one: "event", many: "events", table: show::table };
        listing.run(self.pages, &mut Session::open(globals)?, |api, limit, cursor| {
            api.events(&filter, limit, cursor)
        })
    }
}
