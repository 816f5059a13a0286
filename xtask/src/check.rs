//! `cargo xtask check`: what can be known about the checkout without running it.

mod adapters;
mod configs;
mod schema;

use std::fs;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;

use crate::build;
use crate::config::Config;
use crate::process;
use crate::progress::Progress;
use crate::setup::cargo_tools;
use crate::sizes;
use crate::stages;
use crate::tools::Tools;
use crate::workspace::Workspace;

/// Without a network the advisory database cannot be had, and waiting does not bring it.
const ADVISORIES_LIMIT: Duration = Duration::from_secs(60);

/// A part of the checks that can be run alone.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Stage {
    /// rustfmt has nothing to change.
    Format,
    /// The migrations give the schema in migrations/snapshot.
    Schema,
    /// The wrangler configs are valid and agree with each other.
    Configs,
    /// clippy has nothing to say.
    Lint,
    /// cargo-deny allows every dependency.
    Dependencies,
    /// Wrangler would deploy every Worker, and none is too large.
    Deploy,
}

/// Runs one stage, or all; `bless` takes the schema as it is now.
pub fn command(workspace: &Workspace, tools: &Tools, only: Option<Stage>, bless: bool) -> Result<()> {
    if bless {
        return schema::bless(workspace);
    }
    stages::run("check", only, |stage| match stage {
        Stage::Format => process::run(tools.command("cargo").args(["fmt", "--all", "--check"])),
        Stage::Schema => schema::check(workspace),
        Stage::Configs => configs::check(workspace, tools),
        Stage::Lint => lint(tools),
        Stage::Dependencies => dependencies(workspace, tools),
        Stage::Deploy => deploy(workspace, tools),
    })
}

/// On the native target, since not every toolchain that compiles the Workers has a clippy.
fn lint(tools: &Tools) -> Result<()> {
    let mut cargo = tools.command("cargo");
    process::run(cargo.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn dependencies(workspace: &Workspace, tools: &Tools) -> Result<()> {
    let progress = Progress::new();
    let cargo_deny = cargo_tools::ensure_cargo_deny(workspace, &progress)?;
    let deny = |arguments: &[&str]| {
        let mut command = tools.command(&cargo_deny.to_string_lossy());
        command.args(arguments);
        command
    };
    process::run(&mut deny(&["check", "bans", "licenses", "sources"]))?;
    let log = workspace.cache.join("logs/advisories.log");
    match process::run_logged(&mut deny(&["fetch", "db"]), &log, Some(ADVISORIES_LIMIT), |_| ()) {
        Ok(()) => process::run(&mut deny(&["check", "--disable-fetch", "advisories"])),
        Err(_) => {
            println!("advisories skipped: their database cannot be reached from here");
            Ok(())
        }
    }
}

fn deploy(workspace: &Workspace, tools: &Tools) -> Result<()> {
    build::build(workspace, tools)?;
    let progress = Progress::new();
    let bundles = workspace.target_dir().join("dry-run");
    for config in Config::all(workspace)? {
        let step = progress.step(config.name());
        let mut wrangler = tools.wrangler();
        wrangler.args(["deploy", "--dry-run", "--outdir"]).arg(bundles.join(config.name()));
        wrangler.arg("-c").arg(&config.path);
        let log = workspace.cache.join("logs").join(format!("dry-run-{}.log", config.name()));
        if let Err(error) = step.run(&mut wrangler, &log, None) {
            step.failed();
            return Err(error);
        }
        step.done("can be deployed");
    }
    fs::remove_dir_all(&bundles)?;
    sizes::check(workspace)
}
