//! Runs the stages of a command one after the other, each with a heading, its time, and how to run it alone.

use std::time::Instant;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::progress::seconds;
use crate::table::Table;

/// Runs one stage, or all; a failed one does not keep the others from being run.
pub fn run<S>(command: &str, only: Option<S>, run_stage: impl Fn(S) -> Result<()>) -> Result<()>
where
    S: ValueEnum + Copy + PartialEq,
{
    let mut table = Table::new(["stage", "result", "time", "alone"]);
    let mut failed = Vec::new();
    for stage in S::value_variants().iter().filter(|stage| only.is_none_or(|only| only == **stage)) {
        let Some(value) = stage.to_possible_value() else {
            continue;
        };
        let name = value.get_name();
        let alone = format!("cargo xtask {command} {name}");
        println!("\n=== {name} (alone: {alone})");
        let started = Instant::now();
        let outcome = run_stage(*stage);
        let took = seconds(started.elapsed());
        let result = if outcome.is_ok() { "passed" } else { "FAILED" };
        if let Err(error) = outcome {
            println!("{error:#}");
            failed.push(name.to_owned());
        }
        println!("=== {name} {result} in {took}");
        table.row([name.to_owned(), result.to_owned(), took, alone]);
    }
    println!("\n{table}");
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}
