//! `cargo xtask bench`: measures the built gateway. The measurements themselves are scripts in bench/.

use anyhow::Result;

use crate::build;
use crate::process;
use crate::sizes;
use crate::tools::Tools;
use crate::workspace::Workspace;

/// What is measured, in the order in which it is run.
const SCRIPTS: [&str; 2] = ["bench/throughput.mjs", "bench/adapter-cpu.mjs"];

/// Builds, measures, and prints how large the Workers are.
pub fn command(workspace: &Workspace, tools: &Tools) -> Result<()> {
    build::build(workspace, tools)?;
    for script in SCRIPTS {
        println!("\n=== {script}");
        let mut node = tools.command("node");
        node.env("WRANGLER_SEND_METRICS", "false").env("CI", "1").arg(script);
        process::run(&mut node)?;
    }
    println!();
    sizes::print(workspace)
}
