//! `swarm replays cancel`: stopping a replay.

use super::show::show_one;
use crate::arguments::Globals;
use crate::failure::Failure;
use crate::session::Session;

/// Stops it and shows what it had done by then.
pub fn run(id: &str, globals: &Globals) -> Result<(), Failure> {
    let mut session = Session::open(globals)?;
    let replay = session.api.cancel_replay(id)?;
    show_one(&mut session, &replay)
}
