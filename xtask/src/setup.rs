//! `cargo xtask setup`: brings the toolchain target, Node, the npm packages and the Cargo tools, each once, each skipped
//! when it is there. Steps that do not need each other run side by side.

pub mod cargo_tools;
pub mod node;
pub mod wasm_target;

use std::thread;
use std::time::Instant;

use anyhow::{Result, anyhow};

use crate::progress::{Progress, seconds};
use crate::tools::Tools;
use crate::workspace::Workspace;

/// Sets everything up that builds and tests need, and hands out the commands that use it.
pub fn setup(workspace: &Workspace) -> Result<Tools<'_>> {
    let progress = Progress::new();
    let (wasm, node, cargo) = thread::scope(|scope| {
        let wasm = scope.spawn(|| wasm_target::ensure(workspace, &progress));
        let node = scope.spawn(|| node::ensure(workspace, &progress));
        let cargo = scope.spawn(|| cargo_tools::ensure(workspace, &progress));
        (wasm.join(), node.join(), cargo.join())
    });
    let died = |_| anyhow!("a setup step ended without a result; please report it");
    let (wasm, node, cargo) = (wasm.map_err(died)?, node.map_err(died)?, cargo.map_err(died)?);
    let failures: Vec<String> = [wasm.as_ref().err(), node.as_ref().err(), cargo.as_ref().err()]
        .into_iter()
        .flatten()
        .map(|error| format!("{error:#}"))
        .collect();
    match (wasm, node, cargo) {
        (Ok(wasm), Ok(node), Ok(cargo)) => {
            Tools::new(workspace, node, wasm, cargo.worker_build_bin, cargo.bindgen_bin)
        }
        // All of them, so that a bare machine is not fixed one error at a time.
        _ => Err(anyhow!("setup is incomplete:\n- {}", failures.join("\n- "))),
    }
}

/// The command itself; `all` also brings what only `check` needs.
pub fn command(workspace: &Workspace, all: bool) -> Result<()> {
    let started = Instant::now();
    setup(workspace)?;
    if all {
        cargo_tools::ensure_cargo_deny(workspace, &Progress::new())?;
    }
    println!("setup: everything is there ({})", seconds(started.elapsed()));
    Ok(())
}
