//! `cargo xtask build`: compiles all Worker crates in one Cargo run, then packages with worker-build only those whose wasm
//! changed, so that a build with nothing to do takes about a second.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, bail};

use crate::process;
use crate::progress::Progress;
use crate::sizes;
use crate::tools::Tools;
use crate::workspace::{Workspace, fingerprint, is_stamped};

/// A crate that becomes a Worker.
pub struct WorkerCrate {
    /// The package's name.
    pub package: &'static str,
    /// Its folder in the checkout.
    pub folder: &'static str,
    /// What it is there for.
    pub purpose: Purpose,
}

/// What a Worker is there for, which says what it is optimized for and whether its size matters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Every event goes through it, so it is built for speed.
    Events,
    /// The same, and it holds the rules of every provider.
    Providers,
    /// It runs by the clock or after a failure, so it is built for size.
    Upkeep,
    /// Only operators and the night wait for it. It is built for size as well, and may have more of it.
    Operators,
    /// Only tests and the bench deploy it.
    Tests,
}

/// All of them.
pub static WORKER_CRATES: [WorkerCrate; 13] = [
    WorkerCrate { package: "swarm-core", folder: "core/worker", purpose: Purpose::Events },
    WorkerCrate { package: "swarm-adapter", folder: "adapters/worker", purpose: Purpose::Providers },
    WorkerCrate { package: "swarm-consumers", folder: "consumers/worker", purpose: Purpose::Events },
    WorkerCrate { package: "swarm-dlq-archiver", folder: "consumers/archiver", purpose: Purpose::Upkeep },
    WorkerCrate { package: "swarm-rejections", folder: "rejections", purpose: Purpose::Upkeep },
    WorkerCrate { package: "swarm-sweeper", folder: "sweeper", purpose: Purpose::Upkeep },
    WorkerCrate { package: "swarm-alerter", folder: "alerter", purpose: Purpose::Upkeep },
    WorkerCrate { package: "swarm-keeper", folder: "keeper", purpose: Purpose::Operators },
    WorkerCrate { package: "swarm-cockpit", folder: "cockpit/worker", purpose: Purpose::Operators },
    WorkerCrate {
        package: "swarm-fixture-tenant",
        folder: "tests/fixture/rust-tenant",
        purpose: Purpose::Tests,
    },
    WorkerCrate {
        package: "swarm-conformance-worker",
        folder: "tests/conformance/worker",
        purpose: Purpose::Tests,
    },
    WorkerCrate { package: "swarm-bench-floor", folder: "bench/floor", purpose: Purpose::Tests },
    // Compared with what the adapter does, so it is built as the adapter is.
    WorkerCrate { package: "swarm-bench-verify", folder: "bench/verify", purpose: Purpose::Providers },
];

impl WorkerCrate {
    /// Where worker-build puts the Worker.
    pub fn build_dir(&self, workspace: &Workspace) -> PathBuf {
        workspace.root.join(self.folder).join("build")
    }

    /// What Cargo makes of the crate.
    fn compiled(&self, workspace: &Workspace) -> PathBuf {
        let file = format!("{}.wasm", self.package.replace('-', "_"));
        workspace.target_dir().join("wasm32-unknown-unknown/release").join(file)
    }

    /// What the packaging depends on; rules of worker-build itself change with the version of `worker`.
    fn fingerprint(&self, workspace: &Workspace) -> Result<String> {
        let path = self.compiled(workspace);
        let wasm = fs::read(&path).with_context(|| format!("{} was not built", path.display()))?;
        let manifest = fs::read(workspace.root.join(self.folder).join("Cargo.toml"))?;
        let version = workspace.locked_version("worker")?;
        let options = self.wasm_opt().concat();
        Ok(fingerprint([wasm, manifest, version.into_bytes(), options.into_bytes()]))
    }

    /// The options of wasm-opt.
    fn wasm_opt(&self) -> Vec<&'static str> {
        let own: &[&str] = match self.purpose {
            Purpose::Providers | Purpose::Upkeep | Purpose::Operators => &WASM_OPT_FOR_SIZE,
            Purpose::Events | Purpose::Tests => &[],
        };
        [&WASM_OPT, own].concat()
    }
}

/// Selects all Worker crates, also where worker-build calls Cargo for one of them: a crate built alone gets its
/// dependencies with other features, so that everything would be compiled twice.
fn package_options() -> impl Iterator<Item = String> {
    WORKER_CRATES.iter().map(|worker| format!("--package={}", worker.package))
}

/// Builds every Worker. Only one build runs at a time in a checkout: two would package into the same folders.
pub fn build(workspace: &Workspace, tools: &Tools) -> Result<()> {
    let _lock = workspace.lock_here("build")?;
    let mut cargo = tools.wasm_command("cargo");
    cargo.args(["build", "--quiet", "--release", "--target", "wasm32-unknown-unknown"]);
    cargo.args(package_options());
    let progress = Progress::new();
    let step = progress.step("compile Workers");
    step.note("cargo build --release --target wasm32-unknown-unknown");
    if let Err(error) = process::run(&mut cargo) {
        step.failed();
        return Err(error);
    }
    step.done("wasm32");

    let mut changed = VecDeque::new();
    for worker in &WORKER_CRATES {
        let wanted = worker.fingerprint(workspace)?;
        let dir = worker.build_dir(workspace);
        if !is_stamped(&dir.join(".stamp"), &wanted) || !dir.join("index.js").is_file() {
            changed.push_back((worker, wanted));
        }
    }
    package_all(workspace, tools, &progress, changed)
}

/// The command itself.
pub fn command(workspace: &Workspace, tools: &Tools, with_sizes: bool) -> Result<()> {
    build(workspace, tools)?;
    if with_sizes {
        sizes::print(workspace)?;
    }
    Ok(())
}

/// Packages as many crates at once as there are cores, since wasm-opt uses one each.
fn package_all(
    workspace: &Workspace,
    tools: &Tools,
    progress: &Progress,
    changed: VecDeque<(&WorkerCrate, String)>,
) -> Result<()> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let queue = Mutex::new(changed);
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                // The guard must be gone before the work starts, or the threads would take turns.
                let next = || queue.lock().ok()?.pop_front();
                while let Some((worker, wanted)) = next() {
                    if let Err(error) = package(workspace, tools, progress, worker, &wanted)
                        && let Ok(mut failures) = failures.lock()
                    {
                        failures.push(format!("{error:#}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap_or_default();
    if !failures.is_empty() {
        bail!("{}", failures.join("\n"));
    }
    Ok(())
}

fn package(
    workspace: &Workspace,
    tools: &Tools,
    progress: &Progress,
    worker: &WorkerCrate,
    wanted: &str,
) -> Result<()> {
    let step = progress.step(worker.package);
    let mut worker_build = tools.wasm_command("worker-build");
    worker_build.current_dir(workspace.root.join(worker.folder)).arg("--release").args(package_options());
    let log = workspace.cache.join("logs").join(format!("worker-build-{}.log", worker.package));
    let packaged = step.run(&mut worker_build, &log, None).and_then(|()| optimize(workspace, tools, worker));
    if let Err(error) = packaged {
        step.failed();
        return Err(error);
    }
    fs::write(worker.build_dir(workspace).join(".stamp"), wanted)?;
    step.done("packaged");
    Ok(())
}

/// What wasm-opt does. worker-build would keep the functions' names, which are a fifth of a module, so the manifests of the
/// Worker crates switch its own call off.
const WASM_OPT: [&str; 9] = [
    "-Os",
    "--strip-debug",
    // What rustc and wasm-bindgen emit, and no more, so that nothing is written that workerd does not read yet.
    "--enable-mutable-globals",
    "--enable-sign-ext",
    "--enable-nontrapping-float-to-int",
    "--enable-bulk-memory",
    "--enable-multivalue",
    "--enable-reference-types",
    "--enable-exception-handling",
];

/// A function that is called from one place stays a function of its own. Inlining it saves a call, but among a thousand
/// functions that resemble each other gzip finds more to repeat: a module gets a little larger, and a tenth smaller compressed.
const WASM_OPT_FOR_SIZE: [&str; 1] = ["--one-caller-inline-max-function-size=0"];

fn optimize(workspace: &Workspace, tools: &Tools, worker: &WorkerCrate) -> Result<()> {
    let wasm = worker.build_dir(workspace).join("index_bg.wasm");
    let mut wasm_opt = tools.command("wasm-opt");
    wasm_opt.args(worker.wasm_opt()).arg(&wasm).arg("--output").arg(&wasm);
    process::run(&mut wasm_opt)
}
