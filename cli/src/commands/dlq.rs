//! `swarm dlq`: incidents, each of which is an event that failed for good or a message that nobody could read.

mod decide;
mod list;
mod replay;
mod show;
mod view;

use clap::Subcommand;

use self::decide::{Decide, Verb};
use self::list::List;
use self::replay::Replay;
use self::view::View;
use crate::arguments::Globals;
use crate::failure::Failure;

/// The verbs.
#[derive(Subcommand)]
pub enum Dlq {
    /// List incidents, newest first.
    List(List),
    /// Show one incident with its error, its payload and what has been done about it.
    View(View),
    /// Mark incidents as being worked on.
    Triage(Decide),
    /// Let incidents rest: they need nothing, and nobody is told of them any more.
    Ignore(Decide),
    /// Send events to their topics once more: those of the given incidents, or of all that filters match.
    Replay(Replay),
}

/// Runs a verb.
pub fn run(command: Dlq, globals: &Globals) -> Result<(), Failure> {
    match command {
        Dlq::List(list) => list.run(globals),
        Dlq::View(view) => view.run(globals),
        Dlq::Triage(decide) => decide.run(Verb::Triage, globals),
        Dlq::Ignore(decide) => decide.run(Verb::Ignore, globals),
        Dlq::Replay(replay) => replay.run(globals),
    }
}
