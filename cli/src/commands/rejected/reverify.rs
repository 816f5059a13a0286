//! `swarm rejected reverify`: verifies kept requests again and publishes those that pass: those that are named, or all that
//! filters match.

use clap::Args;
use swarm_domain::limits::REVERIFY_CALL_MAX;
use swarm_domain::rejected::RejectedFilterInput;

use super::FilterArguments;
use crate::api::{Record, Reverified};
use crate::arguments::{Globals, values};
use crate::confirm;
use crate::failure::{Failure, Kind};
use crate::notes;
use crate::output::numbers::count;
use crate::output::table::{Cell, Column, Table};
use crate::progress::Progress;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  swarm rejected reverify 8203920430123-6f1c2a9b
  swarm rejected reverify --provider github --since 1d
  swarm rejected reverify --all --yes

A request is removed once its events are recorded. One that does not pass stays, and can be verified again later.";

/// Requests that are listed at once.
const PAGE_MAX: usize = 200;

/// Which requests.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Reverify {
    /// Ids of requests; or else give filters.
    #[arg(value_name = "REJECTED_ID", value_parser = values::id)]
    rejected: Vec<String>,
    #[command(flatten)]
    filter: FilterArguments,
    /// Every request that is kept.
    #[arg(long)]
    all: bool,
    /// Say how many it would be, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

impl Reverify {
    /// Verifies them again and shows what became of each.
    pub fn run(self, globals: &Globals) -> Result<(), Failure> {
        let filter = self.filter.checked()?;
        let by_filter = filter != RejectedFilterInput::default() || self.all;
        if by_filter != self.rejected.is_empty() {
            return Err(Failure::usage(
                "say which requests: give their ids, or a filter such as --provider, or --all, and not both",
            ));
        }
        let mut session = Session::open(globals)?;
        let ids = if by_filter { matching(&session, &filter)? } else { self.rejected };
        let total = u64::try_from(ids.len()).unwrap_or(u64::MAX);
        let what = count(total, "request", "requests");
        if self.dry_run || ids.is_empty() {
            notes::note(&format!("{what} would be verified again"));
            return Ok(());
        }
        if by_filter && !self.yes {
            confirmed(&what)?;
        }
        let progress = Progress::towards(total, "requests");
        let done = verify_all(&session, &ids, &progress);
        progress.clear();
        show(&mut session, &done.reverified)?;
        done.failure.map_or_else(|| outcome(&done.reverified), Err)
    }
}

/// The ids of all that match now. What comes meanwhile is left for another time.
fn matching(session: &Session, filter: &RejectedFilterInput) -> Result<Vec<String>, Failure> {
    let (mut ids, mut cursor) = (Vec::new(), None);
    loop {
        let page = session.api.rejected(filter, PAGE_MAX, cursor.as_deref())?;
        ids.extend(page.entries.into_iter().map(|one| one.value.rejected_id));
        if page.next_cursor.is_none() || page.next_cursor == cursor {
            return Ok(ids);
        }
        cursor = page.next_cursor;
    }
}

fn confirmed(what: &str) -> Result<(), Failure> {
    if !confirm::can_ask() {
        let problem = format!("{what} would be verified again, but nobody could confirm it: add --yes");
        return Err(Failure::new(Kind::Refused, problem));
    }
    if confirm::ask(&format!("Verify {what} again, and publish those that pass?")) {
        return Ok(());
    }
    Err(Failure::new(Kind::Refused, "nothing was verified"))
}

/// What was done before the end or the first failure.
struct Done {
    reverified: Vec<Record<Reverified>>,
    failure: Option<Failure>,
}

fn verify_all(session: &Session, ids: &[String], progress: &Progress) -> Done {
    let mut done = Done { reverified: Vec::new(), failure: None };
    let (mut tried, total) = (0_u64, u64::try_from(ids.len()).unwrap_or(u64::MAX));
    for some in ids.chunks(REVERIFY_CALL_MAX) {
        match session.api.reverify(some) {
            Ok(reverified) => done.reverified.extend(reverified),
            Err(failure) => {
                done.failure = Some(failure.and("what is not shown here can be verified again"));
                break;
            }
        }
        tried += u64::try_from(some.len()).unwrap_or(u64::MAX);
        progress.at(tried, Some(total));
    }
    done
}

fn show(session: &mut Session, reverified: &[Record<Reverified>]) -> Result<(), Failure> {
    if session.out.is_json() {
        return reverified.iter().try_for_each(|one| session.out.json(&one.json));
    }
    let mut table = Table::new(vec![
        Column::new("rejected"),
        Column::new("now"),
        Column::new("events").shrinks_to(8),
        Column::new("because").shrinks_to(16).optional(),
    ]);
    for Record { value: one, .. } in reverified {
        let now = if one.recorded { "recorded" } else { one.reason.as_deref().unwrap_or("rejected") };
        table.row(vec![
            Cell::new(&one.rejected_id),
            Cell::new(now),
            Cell::new(&one.event_ids.join(" ")),
            Cell::new(one.detail.as_deref().unwrap_or_default()),
        ]);
    }
    if reverified.is_empty() { Ok(()) } else { session.out.table(&table) }
}

/// Requests that did not pass are a refusal to scripts.
fn outcome(reverified: &[Record<Reverified>]) -> Result<(), Failure> {
    let total = u64::try_from(reverified.len()).unwrap_or(u64::MAX);
    let refused = reverified.iter().filter(|one| !one.value.recorded).count();
    if refused == 0 {
        notes::note(&format!("{} recorded", count(total, "request is", "requests are")));
        return Ok(());
    }
    Err(Failure::new(Kind::Refused, format!("{refused} of {total} did not pass and are kept")))
}
