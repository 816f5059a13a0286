//! Lists that come page by page: as JSON while they come, as a table at the end.

use clap::Args;

use crate::api::{Api, Page, Record};
use crate::failure::Failure;
use crate::notes;
use crate::output::table::Table;
use crate::progress::Progress;
use crate::session::Session;

use swarm_domain::time::Timestamp;

/// Entries that the API gives on one page.
const PAGE_MAX: usize = 200;

/// How much of a list is wanted.
#[derive(Args)]
pub struct PageArguments {
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

/// A list of things.
pub struct Listing<T> {
    /// What there may be none of: `no incident matches`.
    pub one: &'static str,
    /// What is counted while it is read: `incidents`.
    pub many: &'static str,
    /// How they look in a table.
    pub table: fn(&[Record<T>], Timestamp) -> Table,
}

impl<T> Listing<T> {
    /// Lists what `page` gives. JSON is written as it comes; a table waits for the widths of its columns.
    pub fn run(
        &self,
        wanted: PageArguments,
        session: &mut Session,
        page: impl Fn(&Api, usize, Option<&str>) -> Result<Page<T>, Failure>,
    ) -> Result<(), Failure> {
        let limit = if wanted.all { usize::MAX } else { usize::try_from(wanted.limit).unwrap_or(usize::MAX) };
        let progress = if limit > PAGE_MAX { Progress::counting(self.many) } else { Progress::silent() };
        let mut reading = Reading { rows: Vec::new(), listed: 0, cursor: wanted.cursor };
        let outcome = reading.read(session, limit, &progress, page);
        progress.clear();
        outcome?;
        if !reading.rows.is_empty() {
            session.out.table(&(self.table)(&reading.rows, session.now))?;
        }
        if reading.listed == 0 {
            notes::note(&format!("no {} matches", self.one));
        }
        if let Some(cursor) = reading.cursor.filter(|_| !session.out.is_closed()) {
            notes::note(&format!("there are more: add --cursor {cursor}, or --all"));
        }
        Ok(())
    }
}

/// How far a list is.
struct Reading<T> {
    rows: Vec<Record<T>>,
    listed: usize,
    cursor: Option<String>,
}

impl<T> Reading<T> {
    /// Reads as many pages as it takes. One without entries may be followed by others: the gateway looks at so many at a time.
    fn read(
        &mut self,
        session: &mut Session,
        limit: usize,
        progress: &Progress,
        page: impl Fn(&Api, usize, Option<&str>) -> Result<Page<T>, Failure>,
    ) -> Result<(), Failure> {
        loop {
            let wanted = limit.saturating_sub(self.listed).min(PAGE_MAX);
            let Page { entries, next_cursor } = page(&session.api, wanted, self.cursor.as_deref())?;
            // The same place again would have us ask for ever.
            let is_last = next_cursor.is_none() || next_cursor == self.cursor;
            self.listed = self.listed.saturating_add(entries.len());
            self.cursor = next_cursor;
            progress.around(|| self.take(session, entries))?;
            progress.at(u64::try_from(self.listed).unwrap_or(u64::MAX), None);
            if is_last || self.listed >= limit || session.out.is_closed() {
                return Ok(());
            }
        }
    }

    fn take(&mut self, session: &mut Session, entries: Vec<Record<T>>) -> Result<(), Failure> {
        if session.out.is_json() {
            return entries.iter().try_for_each(|entry| session.out.json(&entry.json));
        }
        self.rows.extend(entries);
        Ok(())
    }
}
