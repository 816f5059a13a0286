//! `cargo xtask bench`: measures the built gateway. The measurements themselves are scripts in bench/.

use anyhow::Result;
use clap::ValueEnum;

use crate::build;
use crate::process;
use crate::sizes;
use crate::tools::Tools;
use crate::workspace::Workspace;

/// What can be measured alone.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Bench {
    /// How much of a floor's throughput the gateway reaches.
    Throughput,
    /// What a verified event costs the adapter.
    AdapterCpu,
    /// What verifying costs beside a bare HMAC and one JSON scan.
    Verify,
    /// What a backlog costs the sweeper, from 1,000 to 100,000 dispatches.
    Sweeper,
    /// Whether a replay of 10,000 incidents obeys its rate, and what it does to live events.
    Replay,
}

impl Bench {
    fn script(self) -> &'static str {
        match self {
            Self::Throughput => "bench/throughput.mjs",
            Self::AdapterCpu => "bench/adapter-cpu.mjs",
            Self::Verify => "bench/verify.mjs",
            Self::Sweeper => "bench/sweeper.mjs",
            Self::Replay => "bench/replay.mjs",
        }
    }
}

/// Builds and measures. What nobody names is the accept path: its throughput, the adapter, and how large the Workers are.
pub fn command(workspace: &Workspace, tools: &Tools, only: Option<Bench>) -> Result<()> {
    build::build(workspace, tools)?;
    if let Some(bench) = only {
        return run(tools, bench);
    }
    run(tools, Bench::Throughput)?;
    run(tools, Bench::AdapterCpu)?;
    run(tools, Bench::Verify)?;
    println!();
    sizes::print(workspace)
}

fn run(tools: &Tools, bench: Bench) -> Result<()> {
    println!("\n=== {}", bench.script());
    let mut node = tools.command("node");
    node.env("WRANGLER_SEND_METRICS", "false").env("CI", "1").arg(bench.script());
    process::run(&mut node)
}
