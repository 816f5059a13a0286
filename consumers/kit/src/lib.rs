//! What every consumer does alike, so that a handler is only about its own effect.
//!
//! [`consume`] leases a batch, hands it to the [`handler`], gives up on what cannot be handled and records all outcomes. It
//! reaches the world through the domain's ports alone and runs natively as well; [`worker`] puts it behind a Worker's queue
//! handler. This crate has no wasm exports: a Worker would re-export them.

pub mod consume;
pub mod failure;
pub mod handler;
mod handling;
mod letters;
mod retries;
mod settling;
pub mod verdict;
pub mod worker;

pub use consume::{Consumer, Incoming};
pub use failure::Failure;
pub use handler::{Delivery, Handled, Handler};
pub use verdict::{Disposition, End, Verdict};
