//! Every decision of the gateway, with no knowledge of Workers.
//!
//! Events come in through [`accept`], their sends are settled by [`settle`], what was left behind is found by
//! [`sweep`], and consumers go through [`lease`]. The world is reached through the traits in [`ports`] alone, and time and
//! random tokens arrive as arguments, so that a simulated run is a function of its seed.

pub mod accept;
pub mod alert;
pub mod archive;
pub mod caller;
pub mod claim;
pub mod event;
pub mod events;
pub mod history;
pub mod identity;
pub mod ids;
pub mod inbox;
pub mod incident;
pub mod join;
pub mod lane;
pub mod lease;
pub mod ledger;
pub mod limits;
pub mod message;
mod packing;
pub mod payload;
pub mod ports;
pub mod receipt;
pub mod rejected;
pub mod replay;
pub mod retention;
pub mod routing;
pub mod settle;
pub mod states;
pub mod sweep;
pub mod tenancy;
pub mod time;
pub mod topic;
