//! The commands, one file each.

pub mod completion;
pub mod dlq;
pub mod events;
pub mod listen;
pub mod rejected;
pub mod replays;
pub mod tail;
pub mod trigger;
pub mod whoami;

use crate::arguments::{Arguments, Command};
use crate::failure::Failure;

/// Runs a command.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let globals = &arguments.globals;
    match arguments.command {
        Command::Dlq(command) => dlq::run(command, globals),
        Command::Events(command) => events::run(command, globals),
        Command::Tail(tail) => tail.run(globals),
        Command::Listen(listen) => listen.run(globals),
        Command::Rejected(command) => rejected::run(command, globals),
        Command::Replays(command) => replays::run(command, globals),
        Command::Trigger(trigger) => trigger.run(globals),
        Command::Completion(completion) => completion.run(globals),
        Command::Whoami => whoami::run(globals),
    }
}
