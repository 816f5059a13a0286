//! Events as operators look for them: a page of a list, one event with every attempt of its dispatches, and what arrives.

mod cursor;
mod filter;
mod follow;
mod list;
mod record;
mod view;

use crate::ledger::Ledger;

pub use filter::{EventFilter, EventFilterInput};
pub use follow::{FOLLOW, Followed, TOP};
pub use list::{EventPage, FIND_BY_ID, FIND_BY_NAME, FIND_SEQ, LIST, LIST_OF_TENANT, NEXT, NEXT_OF_TENANT};
pub use record::{DispatchBrief, EventBrief};
pub use view::{DispatchDetails, EventDetails, READ_DISPATCHES, READ_EVENT, READ_PAYLOAD};

/// The events of a ledger, to be looked at.
#[derive(Debug)]
pub struct Events<'a, S> {
    /// Where they are.
    pub ledger: &'a Ledger<S>,
}
