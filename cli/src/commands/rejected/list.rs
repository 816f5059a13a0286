//! `swarm rejected list`: kept requests by filter, page by page.

use clap::Args;
use swarm_domain::time::Timestamp;

use super::FilterArguments;
use crate::api::{Record, Rejected};
use crate::arguments::Globals;
use crate::failure::Failure;
use crate::listing::{Listing, PageArguments};
use crate::output::table::{Cell, Column, Table};
use crate::output::times;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  swarm rejected list --provider github --since 2h
  swarm rejected list --reason signature_mismatch --all --json";

/// Which requests, and how many.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct List {
    #[command(flatten)]
    filter: FilterArguments,
    #[command(flatten)]
    pages: PageArguments,
}

impl List {
    /// Lists the requests.
    pub fn run(self, globals: &Globals) -> Result<(), Failure> {
        let filter = self.filter.checked()?;
        let listing = Listing { one: "kept request", many: "requests", table };
        listing.run(self.pages, &mut Session::open(globals)?, |api, limit, cursor| {
            api.rejected(&filter, limit, cursor)
        })
    }
}

fn table(rejected: &[Record<Rejected>], now: Timestamp) -> Table {
    let mut table = Table::new(vec![
        Column::new("rejected"),
        Column::new("age"),
        Column::new("provider"),
        Column::new("tenant").shrinks_to(6).optional(),
        Column::new("reason").shrinks_to(12),
    ]);
    for Record { value: one, .. } in rejected {
        table.row(vec![
            Cell::new(&one.rejected_id),
            Cell::new(&times::age(&one.received_at, now)),
            Cell::new(&one.provider),
            Cell::new(one.tenant_id.as_deref().unwrap_or("-")),
            Cell::new(&one.reason),
        ]);
    }
    table
}
