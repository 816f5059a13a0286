//! The local gateway: migrated databases, one wrangler process that runs all Workers, and a second one that gives the
//! cockpit a port of its own. Both `dev` and its smoke run use it, each with a folder for its state.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::config::{COCKPIT_DOOR, CORE, Config};
use crate::http::Gateway;
use crate::process;
use crate::process_group::ProcessGroup;
use crate::progress::Progress;
use crate::tools::Tools;
use crate::workspace::{Workspace, files_with_extension, fingerprint};

/// A start takes seconds; after this long something is wrong that waiting will not mend.
const START_LIMIT: Duration = Duration::from_secs(90);

/// Where the gateway listens on this machine.
#[derive(Clone, Copy)]
pub struct Ports {
    /// The webhook endpoint.
    pub webhooks: u16,
    /// The operators' API.
    pub cockpit: u16,
}

/// A running local gateway, which stops when this is dropped.
pub struct Stack {
    /// How to talk to it.
    pub gateway: Gateway,
    /// How to talk to its cockpit.
    pub cockpit: Gateway,
    /// What it prints.
    pub lines: Receiver<Output>,
    processes: [ProcessGroup; 2],
}

/// What comes from the processes of a stack.
pub enum Output {
    /// A line of one of them.
    Line(String),
    /// One of them has ended.
    Ended,
}

/// Applies the migrations to every ledger database in `state`, unless it has them.
pub fn migrate(workspace: &Workspace, tools: &Tools, progress: &Progress, state: &Path) -> Result<()> {
    let core = Config::read(workspace, Path::new(CORE))?;
    let databases = core.json.pointer("/d1_databases").map(ToString::to_string).unwrap_or_default();
    let mut wanted = format!("{} d1_databases\n", fingerprint([databases]));
    for migration in files_with_extension(&workspace.root.join("migrations"), "sql")? {
        let name = migration.file_name().unwrap_or_default().to_string_lossy();
        wanted.push_str(&format!("{} {name}\n", fingerprint([fs::read(&migration)?])));
    }
    let stamp = state.join("migrated.stamp");
    let applied = fs::read_to_string(&stamp).unwrap_or_default();
    if applied == wanted {
        return Ok(());
    }
    // Wrangler goes by names and would not notice.
    if let Some(edited) = applied.lines().find(|line| line.ends_with(".sql") && !wanted.contains(line)) {
        let name = edited.rsplit(' ').next().unwrap_or(edited);
        bail!(
            "{name} was edited since it was applied here; `cargo xtask dev --fresh` begins with empty databases"
        );
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
            return Err(error);
        }
    }
    fs::write(&stamp, wanted)?;
    step.done("up to date");
    Ok(())
}

impl Stack {
    /// Starts the Workers of `configs`, the first of which gets the port of the webhooks, and waits until they are ready.
    pub fn start(
        tools: &Tools,
        progress: &Progress,
        configs: &[PathBuf],
        state: &Path,
        ports: Ports,
    ) -> Result<Self> {
        let step = progress.step("start Workers");
        // Whoever was killed has not signed off, and would be asked for its Workers.
        let registry = state.join("registry");
        if registry.exists() {
            fs::remove_dir_all(&registry)?;
        }
        let (sender, lines) = channel();
        let door = [PathBuf::from(COCKPIT_DOOR)];
        let processes = [
            wrangler_dev(tools, configs, &registry, state, ports.webhooks, sender.clone())?,
            // It keeps nothing, and two processes would lock each other out of the same databases.
            wrangler_dev(tools, &door, &registry, &state.join("door"), ports.cockpit, sender)?,
        ];
        let stack = Self {
            gateway: Gateway::at(ports.webhooks),
            cockpit: Gateway::at(ports.cockpit),
            lines,
            processes,
        };
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
        let mut waiting_for = self.processes.len();
        while waiting_for > 0 {
            match self.lines.recv_timeout(START_LIMIT.saturating_sub(started.elapsed())) {
                Ok(Output::Line(line)) if line.contains("Ready on") => waiting_for -= 1,
                Ok(Output::Line(line)) => printed.push(process::without_addresses(&line)),
                Err(RecvTimeoutError::Timeout) => {
                    bail!("wrangler dev was not ready in time:\n{}", printed.join("\n"))
                }
                Ok(Output::Ended) | Err(RecvTimeoutError::Disconnected) => {
                    bail!("wrangler dev did not start:\n{}", printed.join("\n"))
                }
            }
        }
        Ok(())
    }
}

/// One process of wrangler, the first Worker of which gets HTTP at `port`.
fn wrangler_dev(
    tools: &Tools,
    configs: &[PathBuf],
    registry: &Path,
    state: &Path,
    port: u16,
    sender: Sender<Output>,
) -> Result<ProcessGroup> {
    let mut wrangler = tools.wrangler();
    wrangler
        // Wrangler lets processes find each other's Workers by name. Each state has a registry of its own, or two
        // checkouts, or dev and a smoke run, would call into each other.
        .env("WRANGLER_REGISTRY_PATH", registry)
        .args(["dev", "--ip", "127.0.0.1", "--inspector-port", "0", "--port", &port.to_string()])
        .arg("--persist-to")
        .arg(state);
    for config in configs {
        wrangler.arg("-c").arg(config);
    }
    let (processes, reader) = ProcessGroup::start(&mut wrangler)?;
    thread::spawn(move || {
        // Nobody receives any more once the stack is dropped; the pipe then ends as well.
        process::lines_of(reader)
            .map(Output::Line)
            .chain([Output::Ended])
            .all(|output| sender.send(output).is_ok())
    });
    Ok(processes)
}

/// A port that nobody listens at. Another program may take it before we do, which wrangler would then say.
pub fn free_port() -> Result<u16> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").context("no port is free")?;
    Ok(listener.local_addr()?.port())
}
