//! `swarm replays list`: the latest replays.

use super::show;
use crate::arguments::Globals;
use crate::failure::Failure;
use crate::notes;
use crate::session::Session;

/// Lists them.
pub fn run(globals: &Globals) -> Result<(), Failure> {
    let mut session = Session::open(globals)?;
    let replays = session.api.replays()?;
    if replays.is_empty() {
        notes::note("there are no replays");
        return Ok(());
    }
    show::show(&mut session, &replays)
}
