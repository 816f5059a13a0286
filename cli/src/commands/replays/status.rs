//! `swarm replays status`: how far a replay is.

use super::show::show_one;
use crate::arguments::Globals;
use crate::failure::Failure;
use crate::session::Session;

/// Shows it.
pub fn run(id: &str, globals: &Globals) -> Result<(), Failure> {
    let mut session = Session::open(globals)?;
    let replay = session.api.replay(id)?;
    show_one(&mut session, &replay)
}
