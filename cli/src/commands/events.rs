//! `swarm events`: everything that the ledger has recorded.

mod filter;
mod find;
mod list;
mod raw;
mod replay;
mod show;
mod view;

use clap::Subcommand;

pub use self::filter::EventFilterArguments;
pub use self::show::{style_of, topics};

use self::list::List;
use self::raw::Raw;
use self::replay::Replay;
use self::view::View;
use crate::arguments::Globals;
use crate::failure::Failure;

/// The verbs.
#[derive(Subcommand)]
pub enum Events {
    /// List events, newest first.
    List(List),
    /// Show one event with its payload and every attempt to deliver it.
    View(View),
    /// Write the payload of one event, byte for byte.
    Raw(Raw),
    /// Send events to topics once more, whether they were delivered or not.
    Replay(Replay),
}

/// Runs a verb.
pub fn run(command: Events, globals: &Globals) -> Result<(), Failure> {
    match command {
        Events::List(list) => list.run(globals),
        Events::View(view) => view.run(globals),
        Events::Raw(raw) => raw.run(globals),
        Events::Replay(replay) => replay.run(globals),
    }
}
