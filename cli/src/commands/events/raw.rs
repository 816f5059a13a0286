//! `swarm events raw`: the payload of one event, for a file or another program.

use clap::Args;

use super::find::Name;
use crate::arguments::Globals;
use crate::failure::Failure;
use crate::session::Session;

/// Which event.
#[derive(Args)]
#[command(after_help = "Example:\n  swarm events raw evt_1 | jq .data")]
pub struct Raw {
    #[command(flatten)]
    name: Name,
}

impl Raw {
    /// Writes the payload.
    pub fn run(self, globals: &Globals) -> Result<(), Failure> {
        let mut session = Session::open(globals)?;
        let (tenant, id) = self.name.find(&session.api)?;
        let payload = session.api.payload(&tenant, &id)?;
        session.out.bytes(&payload)
    }
}
