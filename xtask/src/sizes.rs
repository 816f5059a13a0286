//! How large each Worker's wasm is, raw and as Cloudflare counts it: compressed with gzip.

use std::fs;
use std::io::Write;

use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::build::{Purpose, WORKER_CRATES, WorkerCrate};
use crate::table::Table;
use crate::workspace::Workspace;

/// The most that a Worker may have, in KiB compressed. Cloudflare would take twenty times as much, but every cold start has to
/// read it, and an event may have to wait for that. What only tests deploy may have any.
fn gzip_kib_max(purpose: Purpose) -> Option<usize> {
    match purpose {
        Purpose::Events | Purpose::Upkeep => Some(150),
        Purpose::Operators => Some(260),
        Purpose::Providers => Some(290),
        Purpose::Tests => None,
    }
}

/// Prints the sizes of what was built last.
pub fn print(workspace: &Workspace) -> Result<()> {
    let mut table = Table::new(["Worker crate", "wasm KiB", "gzip KiB"]);
    for size in sizes(workspace)? {
        table.row([size.worker.package.to_owned(), kib(size.wasm), kib(size.gzip)]);
    }
    println!("{table}");
    Ok(())
}

/// Prints the sizes, and fails if a Worker that is deployed has become too large.
pub fn check(workspace: &Workspace) -> Result<()> {
    print(workspace)?;
    let mut problems = Vec::new();
    for size in sizes(workspace)? {
        match gzip_kib_max(size.worker.purpose) {
            Some(max) if size.gzip > max * 1024 => {
                problems.push(format!(
                    "{}: {} KiB, at most {max}",
                    size.worker.package,
                    kib(size.gzip).trim()
                ));
            }
            _ => {}
        }
    }
    if !problems.is_empty() {
        bail!("too large when compressed:\n{}", problems.join("\n"));
    }
    Ok(())
}

/// The size of one Worker's wasm, in bytes.
struct Size {
    worker: &'static WorkerCrate,
    wasm: usize,
    gzip: usize,
}

fn sizes(workspace: &Workspace) -> Result<Vec<Size>> {
    WORKER_CRATES.iter().map(|worker| measure(workspace, worker)).collect()
}

fn measure(workspace: &Workspace, worker: &'static WorkerCrate) -> Result<Size> {
    let path = worker.build_dir(workspace).join("index_bg.wasm");
    let wasm = fs::read(&path).with_context(|| format!("no {}; run `cargo xtask build`", path.display()))?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&wasm)?;
    Ok(Size { worker, wasm: wasm.len(), gzip: gzip.finish()?.len() })
}

fn kib(bytes: usize) -> String {
    format!("{:8.1}", bytes as f64 / 1024.0)
}
