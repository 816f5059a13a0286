//! `cargo xtask simulate`: builds the simulation for speed and hands it the terminal and the arguments.

use anyhow::Result;

use crate::process;
use crate::tools::Tools;

/// Runs the simulation; its own `--help` lists the arguments.
pub fn command(tools: &Tools, arguments: &[String]) -> Result<()> {
    let mut cargo = tools.command("cargo");
    cargo.args(["run", "--quiet", "--profile", "simulation", "--package", "swarm-simulation", "--"]);
    process::run(cargo.args(arguments))
}
