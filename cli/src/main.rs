//! `swarm`: what operators do with the gateway, from a terminal. Here the arguments are read and the outcome becomes an
//! exit code; each command has a file of its own.

mod api;
mod arguments;
mod commands;
mod confirm;
mod failure;
mod following;
mod interrupt;
mod job;
mod listing;
mod notes;
mod output;
mod progress;
mod session;
mod target;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::Arguments;

fn main() -> ExitCode {
    notes::settle_colours();
    match commands::run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            notes::error(failure.message());
            failure.exit_code()
        }
    }
}
