//! The local gateway: migrated databases and one wrangler process that runs all Workers. Both `dev` and its smoke run
//! use it, each with a folder for its state.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::config::{CORE, Config};
use crate::http::Gateway;
use crate::process;
use crate::process_group::ProcessGroup;
use crate::progress::Progress;
use crate::tools::Tools;
use crate::workspace::{Workspace, files_with_extension, fingerprint, is_stamped};

/// A start takes seconds; after this long something is wrong that waiting will not mend.
const START_LIMIT: Duration = Duration::from_secs(90);

/// A running local gateway, which stops when this is dropped.
pub struct Stack {
    /// How to talk to it.
    pub gateway: Gateway,
    /// What it prints, until it ends.
    pub lines: Receiver<String>,
    _processes: ProcessGroup,
}

/// Applies the migrations to every ledger database in `state`, unless it has them.
pub fn migrate(workspace: &Workspace, tools: &Tools, progress: &Progress, state: &Path) -> Result<()> {
    let core = Config::read(workspace, Path::new(CORE))?;
    let mut parts = vec![core.json.pointer("/d1_databases").map(ToString::to_string).unwrap_or_default()];
    for migration in files_with_extension(&workspace.root.join("migrations"), "sql")? {
        parts.push(fs::read_to_string(migration)?);
    }
    let wanted = fingerprint(parts);
    let stamp = state.join("migrated.stamp");
    if is_stamped(&stamp, &wanted) {
        return Ok(());
    }
    let step = progress.step("migrate local D1");
    for binding in core.list("/d1_databases").iter().filter_map(|database| database["binding"].as_str()) {
        let mut wrangler = tools.wrangler();
        wrangler
            .args(["d1", "migrations", "apply", binding, "--local", "-c", CORE, "--persist-to"])
            .arg(state);
        let log = workspace.cache.join("logs").join(format!("migrate-{binding}.log"));
        if let Err(error) = step.run(&mut wrangler, &log, None) {
            step.failed();
            return Err(error.context("start again with --fresh if a migration was edited"));
        }
    }
    fs::write(&stamp, wanted)?;
    step.done("up to date");
    Ok(())
}

impl Stack {
    /// Starts the Workers of `configs`, the first of which gets HTTP at `port`, and waits until they are ready.
    pub fn start(
        tools: &Tools,
        progress: &Progress,
        configs: &[PathBuf],
        state: &Path,
        port: u16,
    ) -> Result<Self> {
        let step = progress.step("start Workers");
        let mut wrangler = tools.wrangler();
        wrangler
            // Wrangler lets processes find each other's Workers by name. Each state has a registry of its own, or two
            // checkouts, or dev and a smoke run, would call into each other.
            .env("WRANGLER_REGISTRY_PATH", state.join("registry"))
            .args([
                "dev",
                "--ip",
                "127.0.0.1",
                "--inspector-port",
                "0",
                "--port",
                &port.to_string(),
                "--persist-to",
            ])
            .arg(state);
        for config in configs {
            wrangler.arg("-c").arg(config);
        }
        let (processes, reader) = ProcessGroup::start(&mut wrangler)?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            // Nobody receives any more once the stack is dropped; the pipe then ends as well.
            process::lines_of(reader).all(|line| sender.send(line).is_ok())
        });
        let stack = Self { gateway: Gateway::at(port), lines, _processes: processes };
        match stack.wait_until_ready() {
            Ok(()) => step.done(&stack.gateway.url("")),
            Err(error) => {
                step.failed();
                return Err(error);
            }
        }
        Ok(stack)
    }

    /// What wrangler prints before it is ready is worth reading only if it never gets there.
    fn wait_until_ready(&self) -> Result<()> {
        let started = Instant::now();
        let mut printed = Vec::new();
        loop {
            match self.lines.recv_timeout(START_LIMIT.saturating_sub(started.elapsed())) {
                Ok(line) if line.contains("Ready on") => return Ok(()),
                Ok(line) => printed.push(process::without_addresses(&line)),
                Err(RecvTimeoutError::Timeout) => {
                    bail!("wrangler dev was not ready in time:\n{}", printed.join("\n"))
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("wrangler dev did not start:\n{}", printed.join("\n"))
                }
            }
        }
    }
}

/// A port that nobody listens at. Another program may take it before we do, which wrangler would then say.
pub fn free_port() -> Result<u16> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").context("no port is free")?;
    Ok(listener.local_addr()?.port())
}
