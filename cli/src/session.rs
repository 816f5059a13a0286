//! What a command works with: the API, the place for its results, and the time at which it began.

use std::time::SystemTime;

use swarm_domain::time::Timestamp;

use crate::api::Api;
use crate::arguments::Globals;
use crate::failure::Failure;
use crate::output::Output;
use crate::target::Target;

/// What a command works with.
pub struct Session {
    /// The gateway's API.
    pub api: Api,
    /// Where results go.
    pub out: Output,
    /// The time by which ages are told.
    pub now: Timestamp,
}

impl Session {
    /// Finds the API. Arguments are checked before this, so that a wrong command is told of even where no gateway is.
    pub fn open(globals: &Globals) -> Result<Self, Failure> {
        let target = Target::find(globals.url.as_deref(), globals.token.as_deref())?;
        Ok(Self { api: Api::of(target), out: Output::new(globals), now: now() })
    }
}

/// The time on this machine's clock.
pub fn now() -> Timestamp {
    let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    Timestamp::from_unix_ms(i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX))
}
