//! `swarm dlq triage` and `ignore`, and what they share with a replay by ids: the same done to one incident after another.

use std::collections::BTreeSet;

use clap::Args;

use super::show;
use crate::arguments::{Globals, values};
use crate::failure::{Failure, Kind};
use crate::notes;
use crate::session::Session;

/// What is decided.
#[derive(Clone, Copy)]
pub enum Verb {
    /// Somebody works on it.
    Triage,
    /// It needs nothing.
    Ignore,
    /// It is sent once more.
    Replay,
}

/// Which incidents, and why.
#[derive(Args)]
pub struct Decide {
    /// Ids of the incidents.
    #[arg(value_name = "INCIDENT_ID", required = true, value_parser = values::id)]
    incidents: Vec<String>,
    /// Why, for those who look at the incident later.
    #[arg(long)]
    note: Option<String>,
}

impl Decide {
    /// Decides and shows what the incidents have become.
    pub fn run(self, verb: Verb, globals: &Globals) -> Result<(), Failure> {
        each(verb, &self.incidents, self.note.as_deref(), &mut Session::open(globals)?)
    }
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Self::Triage => "triage",
            Self::Ignore => "ignore",
            Self::Replay => "replay",
        }
    }
}

/// Decides about each incident. One that is refused leaves the others alone, and the command ends with its failure; one that
/// every other would share, such as a missing token, ends it at once.
pub fn each(verb: Verb, ids: &[String], note: Option<&str>, session: &mut Session) -> Result<(), Failure> {
    let mut decided = Vec::new();
    let mut failures = Vec::new();
    let mut seen = BTreeSet::new();
    let mut ids = ids.iter().filter(|id| seen.insert(*id));
    while let Some(id) = ids.next() {
        match session.api.decide(id, verb.name(), note) {
            Ok(incident) => {
                if session.out.is_json() {
                    session.out.json(&incident.json)?;
                }
                decided.push(incident);
            }
            Err(failure) if matches!(failure.kind(), Kind::NotFound | Kind::Refused) => {
                failures.push(failure.about(id));
            }
            Err(failure) => {
                let untried: Vec<_> = ids.by_ref().map(String::as_str).collect();
                failures.push(failure.about(id).and_some(not_tried(&untried)));
            }
        }
    }
    if !session.out.is_json() && !decided.is_empty() {
        session.out.table(&show::table(&decided, session.now))?;
    }
    let Some(last) = failures.pop() else {
        return Ok(());
    };
    for failure in &failures {
        notes::error(failure.message());
    }
    Err(last)
}

fn not_tried(ids: &[&str]) -> Option<String> {
    (!ids.is_empty()).then(|| format!("not tried: {}", ids.join(" ")))
}
