//! `swarm rejected stats`: how many requests did not pass, by provider and reason, kept or not.

use clap::Args;
use swarm_domain::time::Timestamp;

use crate::api::{Count, Record};
use crate::arguments::{Globals, values};
use crate::failure::Failure;
use crate::notes;
use crate::output::numbers::thousands;
use crate::output::table::{Cell, Column, Table};
use crate::session::Session;

/// From when on.
#[derive(Args)]
pub struct Stats {
    /// From this time on: 30m, 2h or 7d ago, or RFC 3339. By default the last day.
    #[arg(long, value_name = "TIME", value_parser = values::moment)]
    since: Option<Timestamp>,
}

impl Stats {
    /// Shows the counts, most first.
    pub fn run(self, globals: &Globals) -> Result<(), Failure> {
        let mut session = Session::open(globals)?;
        let counts = session.api.rejections(self.since.map(Timestamp::rfc3339))?;
        if counts.is_empty() {
            notes::note("every request has passed");
        }
        if session.out.is_json() {
            return counts.iter().try_for_each(|count| session.out.json(&count.json));
        }
        if counts.is_empty() { Ok(()) } else { session.out.table(&table(&counts)) }
    }
}

fn table(counts: &[Record<Count>]) -> Table {
    let mut table = Table::new(["provider", "reason", "count"].map(Column::new).into());
    for Record { value, .. } in counts {
        table.row([&*value.provider, &value.reason, &thousands(value.count)].map(Cell::new).into());
    }
    table
}
