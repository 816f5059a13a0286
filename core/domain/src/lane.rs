//! Owning a piece of regular work, such as the dispatches of a topic in a shard, for as long as one keeps saying so.
//!
//! A lane is one row that names who holds it and until when. Taking one costs one row however much work lies behind it, and
//! a holder that dies holds up nobody for longer than its time. Work must stay harmless all the same when two runs do it at
//! once, because a holder may be late.

use crate::ports::{Outcome, Statement};
use crate::time::Timestamp;

/// Takes a lane that is free, or that the same holder has already.
pub const TAKE: &str = "
    INSERT INTO lanes (lane, holder, until) VALUES (?1, ?2, ?3)
    ON CONFLICT (lane) DO UPDATE SET holder = excluded.holder, until = excluded.until
     WHERE lanes.holder = excluded.holder OR lanes.until <= ?4";

/// Keeps a lane for longer, unless another has taken it since.
pub const RENEW: &str = "UPDATE lanes SET until = ?3 WHERE lane = ?1 AND holder = ?2";

/// Gives a lane back, unless another has taken it since.
pub const RELEASE: &str = "DELETE FROM lanes WHERE lane = ?1 AND holder = ?2";

/// A lane in the eyes of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Which work it is.
    pub name: String,
    /// The run: random and unique to it.
    pub holder: String,
}

impl Lane {
    /// The lane `name` as `holder` sees it; nothing is taken yet.
    pub fn new(name: impl Into<String>, holder: impl Into<String>) -> Self {
        Self { name: name.into(), holder: holder.into() }
    }

    /// The statement that takes the lane until `until`, if it is free. [`is_ours`] tells from its outcome whether it was.
    pub fn take(&self, now: Timestamp, until: Timestamp) -> Statement {
        Statement::new(
            TAKE,
            vec![self.name.as_str().into(), self.holder.as_str().into(), until.into(), now.into()],
        )
    }

    /// The statement that keeps the lane until `until`. [`is_ours`] tells from its outcome whether it was still ours.
    pub fn renew(&self, until: Timestamp) -> Statement {
        Statement::new(RENEW, vec![self.name.as_str().into(), self.holder.as_str().into(), until.into()])
    }

    /// The statement that lets others take the lane at once.
    pub fn release(&self) -> Statement {
        Statement::new(RELEASE, vec![self.name.as_str().into(), self.holder.as_str().into()])
    }
}

/// Whether a [`Lane::take`] or a [`Lane::renew`] with this outcome left the lane with its run.
pub fn is_ours(outcome: &Outcome) -> bool {
    outcome.changes > 0
}
