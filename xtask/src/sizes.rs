//! How large each Worker's wasm is, raw and as Cloudflare counts it against the limit: compressed with gzip.

use std::fs;
use std::io::Write;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::build::WORKER_CRATES;
use crate::table::Table;
use crate::workspace::Workspace;

/// Prints the sizes of what was built last.
pub fn print(workspace: &Workspace) -> Result<()> {
    let mut table = Table::new(["Worker crate", "wasm KiB", "gzip KiB"]);
    for worker in &WORKER_CRATES {
        let path = worker.build_dir(workspace).join("index_bg.wasm");
        let wasm =
            fs::read(&path).with_context(|| format!("no {}; run `cargo xtask build`", path.display()))?;
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(&wasm)?;
        table.row([worker.package.to_owned(), kib(wasm.len()), kib(gzip.finish()?.len())]);
    }
    println!("{table}");
    Ok(())
}

fn kib(bytes: usize) -> String {
    format!("{:8.1}", bytes as f64 / 1024.0)
}
