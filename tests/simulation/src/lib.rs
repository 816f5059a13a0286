//! The whole gateway in one process, one thread and one seed.
//!
//! A [`world`] holds everything that the gateway touches, on the native ports: shards in SQLite, [`broker`] and blobs in memory,
//! a clock that jumps from one event to the next. [`actors`] act in it, every call that they make may go wrong as [`faults`]
//! decide, and [`checkers`] watch from outside. [`mutants`] take rules away to show that the checkers would notice.

#![allow(
    clippy::indexing_slicing,
    clippy::new_without_default,
    reason = "a simulation that is wrong about itself must stop at once"
)]

pub mod actors;
pub mod broker;
pub mod checkers;
pub mod dice;
pub mod executor;
pub mod exhaustive;
pub mod faults;
pub mod mutants;
pub mod plan;
pub mod ports;
pub mod process;
pub mod report;
pub mod run;
pub mod trace;
pub mod watch;
pub mod witness;
pub mod world;
