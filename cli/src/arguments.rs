//! The arguments of `swarm`: nouns, then verbs. What a command takes stands beside the command.

pub mod filter;
pub mod values;

use clap::{Args, Parser, Subcommand};

use crate::commands::completion::Completion;
use crate::commands::dlq::Dlq;
use crate::commands::events::Events;
use crate::commands::listen::Listen;
use crate::commands::rejected::Rejected;
use crate::commands::replays::Replays;
use crate::commands::tail::Tail;
use crate::commands::trigger::Trigger;

const AFTER_HELP: &str = "\
The API is found by --url and --token, else SWARM_URL and SWARM_TOKEN, else .swarm/profile.json of this folder or
the nearest one above it, which `cargo xtask dev` writes.

Results go to standard output: tables on a terminal, one JSON object a line anywhere else. All else goes to standard error.

Exit codes:
  0  done                    4  there is no such thing
  1  unexpected              5  refused: its state does not allow it, or nobody confirmed
  2  wrong arguments         6  the gateway cannot be reached
  3  no token, or not this one

Examples:
  swarm dlq list --status open
  swarm dlq view inc_0123456789abcdef0123456789abcdef
  swarm dlq replay inc_0123456789abcdef0123456789abcdef
  swarm dlq replay --tenant acme --topic billing.events";

/// Operates a Swarm Gateway: what failed, why, and having it done after all.
#[derive(Parser)]
#[command(name = "swarm", bin_name = "swarm", version, after_help = AFTER_HELP, max_term_width = 120)]
pub struct Arguments {
    /// Options of every command.
    #[command(flatten)]
    pub globals: Globals,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Globals {
    /// Address of the cockpit, such as https://cockpit.example.com.
    #[arg(long, global = true, value_name = "URL")]
    pub url: Option<String>,
    /// Token of an operator; others can see it here, so rather set SWARM_TOKEN.
    #[arg(long, global = true, value_name = "TOKEN")]
    pub token: Option<String>,
    /// One JSON object a line, on a terminal too.
    #[arg(long, global = true)]
    pub json: bool,
    /// Tables, even where there is no terminal.
    #[arg(long, global = true, conflicts_with = "json")]
    pub table: bool,
}

/// The nouns.
#[derive(Subcommand)]
pub enum Command {
    /// Dead letters: incidents of events that failed for good.
    #[command(subcommand)]
    Dlq(Dlq),
    /// Events: everything that was recorded, and where it went.
    #[command(subcommand)]
    Events(Events),
    /// Show events as they arrive.
    Tail(Tail),
    /// Forward events to a server on this machine as they arrive.
    Listen(Listen),
    /// Webhook requests that did not pass: which, why, and verifying them again.
    #[command(subcommand)]
    Rejected(Rejected),
    /// Replays of many incidents: how far they are, and stopping them.
    #[command(subcommand)]
    Replays(Replays),
    /// Send test events as a provider would, signed, to any gateway.
    Trigger(Trigger),
    /// Who the token belongs to and what it may do.
    Whoami,
    /// Print a script that completes commands in a shell.
    Completion(Completion),
}
