//! Who acts in a world: clients, operators and strangers outside, and every Worker of the gateway inside.

pub mod archiver;
pub mod client;
pub mod consumer;
pub mod core;
pub mod keeper;
pub mod operator;
pub mod stranger;
pub mod sweeper;
