//! `swarm dlq list`: incidents by filter, page by page.

use clap::Args;
use swarm_domain::incident::FilterInput;
use swarm_domain::limits::INCIDENT_PAGE_MAX;

use super::show;
use crate::api::{Incident, Record};
use crate::arguments::Globals;
use crate::arguments::filter::FilterArguments;
use crate::arguments::values;
use crate::failure::Failure;
use crate::notes;
use crate::progress::Progress;
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
    /// At most this many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Begin where an earlier list ended.
    #[arg(long)]
    cursor: Option<String>,
    /// However many there are.
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl List {
    /// Lists the incidents. JSON is written as it comes; a table waits for the widths of its columns.
    pub fn run(self, globals: &Globals) -> Result<(), Failure> {
        let limit = if self.all { usize::MAX } else { usize::try_from(self.limit).unwrap_or(usize::MAX) };
        let filter = self.filter.with_states(self.status)?;
        let mut session = Session::open(globals)?;
        let mut listing = Listing { rows: Vec::new(), listed: 0, cursor: self.cursor };
        let is_long = limit > INCIDENT_PAGE_MAX;
        let progress = if is_long { Progress::counting("incidents") } else { Progress::silent() };
        let outcome = listing.read(&mut session, &filter, limit, &progress);
        progress.clear();
        outcome?;
        if !listing.rows.is_empty() {
            session.out.table(&show::table(&listing.rows, session.now))?;
        }
        if listing.listed == 0 {
            notes::note("no incident matches");
        }
        if let Some(cursor) = listing.cursor.filter(|_| !session.out.is_closed()) {
            notes::note(&format!("there are more: add --cursor {cursor}, or --all"));
        }
        Ok(())
    }
}

/// How far a list is.
struct Listing {
    rows: Vec<Record<Incident>>,
    listed: usize,
    cursor: Option<String>,
}

impl Listing {
    /// Reads as many pages as it takes.
    fn read(
        &mut self,
        session: &mut Session,
        filter: &FilterInput,
        limit: usize,
        progress: &Progress,
    ) -> Result<(), Failure> {
        loop {
            let wanted = limit.saturating_sub(self.listed).min(INCIDENT_PAGE_MAX);
            let page = session.api.incidents(filter, wanted, self.cursor.as_deref())?;
            // A page without incidents that promises more would have us ask for ever.
            let is_last = page.next_cursor.is_none() || page.incidents.is_empty();
            self.listed = self.listed.saturating_add(page.incidents.len());
            self.cursor = page.next_cursor;
            progress.around(|| self.take(session, page.incidents))?;
            progress.at(u64::try_from(self.listed).unwrap_or(u64::MAX), None);
            if is_last || self.listed >= limit || session.out.is_closed() {
                return Ok(());
            }
        }
    }

    fn take(&mut self, session: &mut Session, incidents: Vec<Record<Incident>>) -> Result<(), Failure> {
        if session.out.is_json() {
            return incidents.iter().try_for_each(|incident| session.out.json(&incident.json));
        }
        self.rows.extend(incidents);
        Ok(())
    }
}
