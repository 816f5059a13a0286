//! `cargo xtask`: one command for everything that a checkout needs done. Each subcommand has a file of its own; here are
//! only their arguments.

mod bench;
mod build;
mod check;
mod config;
mod dev;
mod http;
mod operator;
mod process;
mod process_group;
mod progress;
mod random;
mod setup;
mod simulate;
mod sizes;
mod smoke;
mod stack;
mod stages;
mod table;
mod test;
mod tools;
mod trigger;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// Everything that a checkout of Swarm Gateway needs done.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Bring the wasm32 target, Node, the npm packages and the Cargo tools; skip what is there.
    Setup {
        /// Also bring what only `check` needs.
        #[arg(long)]
        all: bool,
    },
    /// Build every Worker.
    Build {
        /// Print how large each Worker's wasm is.
        #[arg(long)]
        sizes: bool,
    },
    /// Run the whole gateway on this machine, crons included, and show its logs.
    Dev(dev::Options),
    /// Run the tests.
    Test {
        /// Run this stage alone.
        stage: Option<test::Stage>,
    },
    /// Check formatting, lints, dependencies, configs and the schema.
    Check {
        /// Run this stage alone.
        stage: Option<check::Stage>,
        /// Take the schema that the migrations give as the right one.
        #[arg(long, conflicts_with = "stage")]
        bless: bool,
    },
    /// Measure throughput, CPU time and sizes.
    Bench {
        /// Measure this alone.
        bench: Option<bench::Bench>,
    },
    /// Send signed events as a provider would.
    Trigger(trigger::Options),
    /// Run the whole gateway under a seed with faults at every call, and check that nothing is lost.
    #[command(disable_help_flag = true)]
    Simulate {
        /// `--seed N`, `--events M`, `--seeds K`, `--minutes T`; `--help` says more.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        // What Ctrl-C broke is no news to who pressed it.
        Err(_) if process_group::was_interrupted() => ExitCode::from(process_group::EXIT_INTERRUPTED),
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    process_group::end_all_on_ctrl_c()?;
    let workspace = Workspace::locate()?;
    match task {
        Task::Setup { all } => setup::command(&workspace, all),
        Task::Dev(options) => dev::command(&workspace, &setup::setup(&workspace)?, &options),
        Task::Test { stage } => test::command(&workspace, &setup::setup(&workspace)?, stage),
        Task::Check { stage, bless } => check::command(&workspace, &setup::setup(&workspace)?, stage, bless),
        Task::Bench { bench } => bench::command(&workspace, &setup::setup(&workspace)?, bench),
        Task::Trigger(options) => trigger::command(&workspace, &setup::setup(&workspace)?, &options),
        Task::Simulate { arguments } => simulate::command(&setup::setup(&workspace)?, &arguments),
        Task::Build { sizes } => build::command(&workspace, &setup::setup(&workspace)?, sizes),
    }
}
