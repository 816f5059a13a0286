//! The tools that come by `cargo install`, each in a folder of the cache that carries its version. They are built fast
//! rather than to run fast: worker-build mostly starts other programs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::progress::Progress;
use crate::workspace::Workspace;

const CARGO_DENY_VERSION: &str = "0.20.2";

/// Where the tools are that build Workers.
pub struct CargoTools {
    /// The folder with `worker-build`.
    pub worker_build_bin: PathBuf,
    /// The folder with `wasm-bindgen` and its test runner.
    pub bindgen_bin: PathBuf,
}

struct Tool {
    name: &'static str,
    version: String,
    /// The program that shows that the tool is there; not always called like its package.
    program: &'static str,
    /// Whether the tool's own lock file can be used: wasm-bindgen's names a version that is no longer served.
    locked: bool,
}

/// Brings worker-build and wasm-bindgen in the versions that Cargo.lock has of `worker` and `wasm-bindgen`; with any
/// other version wasm-bindgen refuses to work.
pub fn ensure(workspace: &Workspace, progress: &Progress) -> Result<CargoTools> {
    let bindgen = Tool {
        name: "wasm-bindgen-cli",
        version: workspace.locked_version("wasm-bindgen")?,
        program: "wasm-bindgen",
        locked: false,
    };
    let worker_build = Tool {
        name: "worker-build",
        version: workspace.locked_version("worker")?,
        program: "worker-build",
        locked: true,
    };
    install(workspace, progress, &[&bindgen, &worker_build])?;
    Ok(CargoTools { worker_build_bin: worker_build.bin(workspace), bindgen_bin: bindgen.bin(workspace) })
}

/// Brings cargo-deny and answers where it is.
pub fn ensure_cargo_deny(workspace: &Workspace, progress: &Progress) -> Result<PathBuf> {
    let deny = Tool {
        name: "cargo-deny",
        version: CARGO_DENY_VERSION.to_owned(),
        program: "cargo-deny",
        locked: true,
    };
    install(workspace, progress, &[&deny])?;
    Ok(deny.bin(workspace).join("cargo-deny"))
}

impl Tool {
    fn bin(&self, workspace: &Workspace) -> PathBuf {
        workspace.cache.join(format!("{}-{}", self.name, self.version)).join("bin")
    }

    fn is_there(&self, workspace: &Workspace) -> bool {
        self.bin(workspace).join(self.program).is_file()
    }
}

fn install(workspace: &Workspace, progress: &Progress, tools: &[&Tool]) -> Result<()> {
    if tools.iter().all(|tool| tool.is_there(workspace)) {
        return Ok(());
    }
    // Not `workspace.target_dir()`: dependencies that the tools share are built once, and all is thrown away afterwards.
    let _lock = workspace.lock("cargo-tools")?;
    let target = workspace.cache.join("tmp/cargo-install");
    for tool in tools.iter().filter(|tool| !tool.is_there(workspace)) {
        let step = progress.step(tool.name);
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(&workspace.cache)
            .env("CARGO_TARGET_DIR", &target)
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .args(["install", tool.name, "--version", &format!("={}", tool.version), "--root"])
            .arg(workspace.cache.join(format!("{}-{}", tool.name, tool.version)));
        if tool.locked {
            cargo.arg("--locked");
        }
        let log = workspace.cache.join("logs").join(format!("{}.log", tool.name));
        if let Err(error) = step.run(&mut cargo, &log, None) {
            step.failed();
            return Err(error);
        }
        step.done(&tool.version);
    }
    if target.exists() {
        fs::remove_dir_all(&target)?;
    }
    Ok(())
}
