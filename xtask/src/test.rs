//! `cargo xtask test`: every test there is, stage by stage, the fast ones first.

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::build;
use crate::dev;
use crate::process;
use crate::stages;
use crate::tools::Tools;
use crate::workspace::{Workspace, files_with_extension};

/// The crates whose tests also run as wasm, which is what is deployed: they say so by depending on wasm-bindgen-test.
const WASM_TESTED: [&str; 1] = ["swarm-verify"];

/// The folder of the tests in the real runtime.
const E2E: &str = "tests/e2e";

/// The TypeScript tenant, which is type-checked against the declaration that core ships.
const TYPESCRIPT_TENANT: &str = "tests/fixture/ts-tenant";

/// A part of the tests that can be run alone.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Stage {
    /// Rust tests on this machine: units, simulation, conformance on SQLite.
    Native,
    /// Rust tests compiled to wasm, under Node.
    Wasm,
    /// The TypeScript tenant against core's declaration.
    Types,
    /// Conformance and whole paths in workerd.
    E2e,
    /// The local gateway as `cargo xtask dev` runs it, a failure and its replay included.
    Smoke,
}

/// Runs one stage, or all.
pub fn command(workspace: &Workspace, tools: &Tools, only: Option<Stage>) -> Result<()> {
    stages::run("test", only, |stage| match stage {
        Stage::Native => native(tools),
        Stage::Wasm => wasm(tools),
        Stage::Types => types(tools),
        Stage::E2e => e2e(workspace, tools),
        Stage::Smoke => dev::smoke(workspace, tools),
    })
}

fn native(tools: &Tools) -> Result<()> {
    process::run(tools.command("cargo").args(["test", "--workspace"]))
}

fn wasm(tools: &Tools) -> Result<()> {
    let mut cargo = tools.wasm_command("cargo");
    cargo.args(["test", "--target", "wasm32-unknown-unknown"]);
    for package in WASM_TESTED {
        cargo.args(["--package", package]);
    }
    process::run(&mut cargo)
}

fn types(tools: &Tools) -> Result<()> {
    process::run(tools.command("tsc").args(["--noEmit", "--project", TYPESCRIPT_TENANT]))
}

fn e2e(workspace: &Workspace, tools: &Tools) -> Result<()> {
    build::build(workspace, tools)?;
    let folder = workspace.root.join(E2E);
    let tests: Vec<_> = files_with_extension(&folder, "mjs")?
        .into_iter()
        .filter(|path| path.to_string_lossy().ends_with(".test.mjs"))
        .collect();
    if tests.is_empty() {
        bail!("{E2E} has no *.test.mjs");
    }
    let relative = tests.iter().map(|test| test.strip_prefix(&workspace.root));
    let relative: Vec<&Path> = relative.collect::<Result<_, _>>().context("a test outside the checkout")?;
    let mut node = tools.command("node");
    node.env("WRANGLER_SEND_METRICS", "false")
        .env("CI", "1")
        // One file at a time: each starts a runtime with several Workers, and two cores are quickly full.
        .args(["--test", "--test-reporter=spec", "--test-concurrency=1"])
        .args(relative);
    process::run(&mut node)
}
