//! How large each Worker's wasm is, raw and as Cloudflare counts it against the limit: compressed with gzip.

use std::fs;
use std::io::Write;

use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::build::WORKER_CRATES;
use crate::table::Table;
use crate::workspace::Workspace;

/// The smallest limit there is for a Worker, compressed: that of the free plan.
const GZIP_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Prints the sizes of what was built last, and fails if a Worker could not be deployed everywhere.
pub fn print(workspace: &Workspace) -> Result<()> {
    let mut too_large = Vec::new();
    let mut table = Table::new(["Worker crate", "wasm KiB", "gzip KiB"]);
    for worker in &WORKER_CRATES {
        let path = worker.build_dir(workspace).join("index_bg.wasm");
        let wasm =
            fs::read(&path).with_context(|| format!("no {}; run `cargo xtask build`", path.display()))?;
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(&wasm)?;
        let compressed = gzip.finish()?.len();
        if compressed > GZIP_BYTES_MAX {
            too_large.push(worker.package);
        }
        table.row([worker.package.to_owned(), kib(wasm.len()), kib(compressed)]);
    }
    println!("{table}");
    if !too_large.is_empty() {
        bail!("larger than {} KiB with gzip: {}", GZIP_BYTES_MAX / 1024, too_large.join(", "));
    }
    Ok(())
}

fn kib(bytes: usize) -> String {
    format!("{:8.1}", bytes as f64 / 1024.0)
}
