//! The wasm32-unknown-unknown target: the active toolchain's own where rustup can bring it, else Debian's compiler with a
//! standard library built from Debian's source of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::{output_of, run_logged};
use crate::progress::{Progress, Step};
use crate::workspace::Workspace;

const TARGET: &str = "wasm32-unknown-unknown";

/// The name under which rustup knows Debian's compiler.
const DEBIAN_TOOLCHAIN: &str = "swarm-wasm";

/// Where Debian's compiler looks for standard libraries.
const DEBIAN_RUSTLIB: &str = "/usr/lib/rustlib";

/// Without a network rustup may wait for minutes, and the fallback does not need it.
const RUSTUP_LIMIT: Duration = Duration::from_secs(60);

/// Which compiler builds Workers.
pub enum WasmToolchain {
    /// The toolchain that builds everything else too.
    Active,
    /// Debian's, which has no wasm linker of its own and borrows rustup's.
    Debian {
        /// The `rust-lld` of the active toolchain.
        linker: PathBuf,
    },
}

impl WasmToolchain {
    /// Makes `command` build with this toolchain.
    pub fn apply(&self, command: &mut Command) {
        if let Self::Debian { linker } = self {
            command
                .env("RUSTUP_TOOLCHAIN", DEBIAN_TOOLCHAIN)
                .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
    }
}

/// Finds a toolchain with the target, or makes one.
pub fn ensure(workspace: &Workspace, progress: &Progress) -> Result<WasmToolchain> {
    if let Some(found) = find(workspace)? {
        return Ok(found);
    }
    let _lock = workspace.lock("wasm-target")?;
    if let Some(found) = find(workspace)? {
        return Ok(found);
    }
    let step = progress.step("wasm32 target");
    let outcome = add(workspace, &step);
    match &outcome {
        Ok(WasmToolchain::Active) => step.done("added by rustup"),
        Ok(WasmToolchain::Debian { .. }) => step.done("Debian's compiler, own standard library"),
        Err(_) => step.failed(),
    }
    outcome
}

fn find(workspace: &Workspace) -> Result<Option<WasmToolchain>> {
    let library = output_of(Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]))
        .context("no working `rustc`; install Rust with rustup")?;
    if Path::new(&library).is_dir() {
        return Ok(Some(WasmToolchain::Active));
    }
    if debian_compiles(workspace)? { Ok(Some(debian()?)) } else { Ok(None) }
}

/// Asks Debian's compiler to use the library. That is the one test that also notices a library which an older version of
/// the compiler left behind.
fn debian_compiles(workspace: &Workspace) -> Result<bool> {
    let probe = workspace.cache.join("tmp/wasm-probe.rs");
    fs::write(&probe, "#![feature(test)]\nextern crate test;\npub fn probe() -> Vec<u8> { vec![1] }\n")?;
    let mut rustc = Command::new("rustc");
    rustc
        .env("RUSTUP_TOOLCHAIN", DEBIAN_TOOLCHAIN)
        // `test` is what wasm tests link, and only a nightly compiler gives it freely.
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["--target", TARGET, "--edition=2024", "--crate-type=lib", "--emit=metadata", "-o"])
        // A real file, never /dev/null: rustc renames its result over the output, and as root it would replace the device.
        .arg(probe.with_extension("rmeta"))
        .arg(&probe);
    Ok(output_of(&mut rustc).is_some())
}

fn debian() -> Result<WasmToolchain> {
    let sysroot =
        output_of(Command::new("rustc").args(["--print", "sysroot"])).context("no working `rustc`")?;
    let host = output_of(Command::new("rustc").arg("-vV"))
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("host: ").map(str::to_owned)))
        .context("`rustc -vV` names no host")?;
    let linker = Path::new(&sysroot).join("lib/rustlib").join(host).join("bin/rust-lld");
    if !linker.is_file() {
        bail!("the active toolchain has no rust-lld; install Rust with rustup");
    }
    Ok(WasmToolchain::Debian { linker })
}

fn add(workspace: &Workspace, step: &Step) -> Result<WasmToolchain> {
    let logs = workspace.cache.join("logs");
    step.note("rustup target add");
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", TARGET]);
    let by_rustup = step.run(&mut rustup, &logs.join("rustup-target.log"), Some(RUSTUP_LIMIT));
    if by_rustup.is_ok() {
        return Ok(WasmToolchain::Active);
    }
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!("`rustup target add {TARGET}` failed and this is no Debian; run it where rustup has network");
    }
    step.note("apt-get update");
    let mut update = as_root("apt-get");
    update.arg("update");
    step.run(&mut update, &logs.join("apt-update.log"), None)?;
    let mut install = as_root("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive").args([
        "install",
        "-y",
        "--no-install-recommends",
        "rustc-web",
        "cargo-web",
        "rust-web-src",
    ]);
    step.run(&mut install, &logs.join("apt-install.log"), None).context(
        "neither rustup nor Debian has a compiler for wasm32; run `rustup target add` where it has network",
    )?;
    let mut link = Command::new("rustup");
    link.args(["toolchain", "link", DEBIAN_TOOLCHAIN, "/usr"]);
    step.run(&mut link, &logs.join("rustup-link.log"), None)?;
    build_standard_library(workspace, step)?;
    if !debian_compiles(workspace)? {
        bail!("Debian's compiler does not take its new wasm32 library; see {}", logs.display());
    }
    debian()
}

/// Builds std from Debian's source and puts it where Debian's compiler looks, in place of any older one.
fn build_standard_library(workspace: &Workspace, step: &Step) -> Result<()> {
    let log = workspace.cache.join("logs/wasm-std.log");
    let folder = workspace.cache.join("tmp/wasm-std");
    fs::create_dir_all(folder.join("src"))?;
    fs::write(
        folder.join("Cargo.toml"),
        "[package]\nname = \"wasm-std\"\nedition = \"2024\"\n[workspace]\n",
    )?;
    fs::write(folder.join("src/lib.rs"), "")?;
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(&folder)
        .env("RUSTUP_TOOLCHAIN", DEBIAN_TOOLCHAIN)
        .env("RUSTC_BOOTSTRAP", "1")
        // Without embedded bitcode nothing that uses this library could be linked with LTO.
        .env("RUSTFLAGS", "-Cembed-bitcode=yes")
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .args(["build", "--release", "--target", TARGET, "-Zbuild-std=std,panic_abort,test"]);
    step.run(&mut cargo, &log, None)?;

    let library = Path::new(DEBIAN_RUSTLIB).join(TARGET).join("lib");
    let built = folder.join("target").join(TARGET).join("release/deps");
    let rlibs: Vec<PathBuf> = crate::workspace::files_with_extension(&built, "rlib")?
        .into_iter()
        .filter(|path| {
            !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libwasm_std-"))
        })
        .collect();
    for command in [
        as_root("rm").arg("-rf").arg(&library),
        as_root("mkdir").arg("-p").arg(&library),
        as_root("cp").args(&rlibs).arg(&library),
    ] {
        run_logged(command, &log, None, |_| ())?;
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}

/// A program that needs root: through sudo, which must not ask, unless we are root.
fn as_root(program: &str) -> Command {
    if nix::unistd::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.args(["-n", program]);
    command
}
