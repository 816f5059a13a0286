//! `swarm replays`: replays of many, which the gateway works off by itself.

mod cancel;
mod follow;
mod list;
mod many;
mod show;
mod status;

use clap::{Args, Subcommand};

pub use self::many::{Many, Pace};

use crate::arguments::{Globals, values};
use crate::failure::Failure;

/// The verbs.
#[derive(Subcommand)]
pub enum Replays {
    /// List the latest replays.
    List,
    /// Show how far a replay is.
    Status(One),
    /// Stop a replay where it is; what it has sent stays sent.
    Cancel(One),
    /// Watch a replay until it ends.
    Follow(One),
}

/// Which replay.
#[derive(Args)]
pub struct One {
    /// Id of the replay.
    #[arg(value_name = "REPLAY_ID", value_parser = values::id)]
    id: String,
}

/// Runs a verb.
pub fn run(command: Replays, globals: &Globals) -> Result<(), Failure> {
    match command {
        Replays::List => list::run(globals),
        Replays::Status(one) => status::run(&one.id, globals),
        Replays::Cancel(one) => cancel::run(&one.id, globals),
        Replays::Follow(one) => follow::run(&one.id, globals),
    }
}
