//! `swarm replays follow`: watching a replay. It changes nothing, so it needs no more than a token that may read.

use super::show::show_one;
use crate::arguments::Globals;
use crate::failure::Failure;
use crate::interrupt;
use crate::job::{self, Job};
use crate::session::Session;

/// Watches it until it ends.
pub fn run(id: &str, globals: &Globals) -> Result<(), Failure> {
    let mut session = Session::open(globals)?;
    let replay = session.api.replay(id)?;
    interrupt::take_over()?;
    let ended = Job::of(replay).until_ended(|| session.api.replay(id))?;
    show_one(&mut session, &ended)?;
    job::outcome(&ended.value)
}
