//! What must hold, seen from outside. Some of it is looked at with every change, some when a message is acknowledged, the rest
//! when everything has come to rest.

pub mod acks;
pub mod alerts;
pub mod archive;
pub mod changes;
pub mod handling;
pub mod incidents;
pub mod operations;
pub mod payloads;
pub mod rest;
