//! What a finished setup gives: commands with the right Node, toolchain and tools in their environment. All other
//! commands of xtask start programs only through here, so that none depends on what the user's shell happens to have.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::setup::wasm_target::WasmToolchain;
use crate::workspace::Workspace;

/// The proof that setup ran, and where its results are.
pub struct Tools<'a> {
    workspace: &'a Workspace,
    path: OsString,
    wasm: WasmToolchain,
    bindgen_bin: PathBuf,
}

impl<'a> Tools<'a> {
    /// Puts the folders with the tools before whatever the user has in PATH.
    pub fn new(
        workspace: &'a Workspace,
        node_bin: Option<PathBuf>,
        wasm: WasmToolchain,
        worker_build_bin: PathBuf,
        bindgen_bin: PathBuf,
    ) -> Result<Self> {
        let mut folders: Vec<PathBuf> = node_bin.into_iter().collect();
        folders.extend([worker_build_bin, workspace.root.join("node_modules/.bin")]);
        folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let path = std::env::join_paths(folders)?;
        Ok(Self { workspace, path, wasm, bindgen_bin })
    }

    /// A program for this machine, run in the checkout.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.workspace.root).env("PATH", &self.path);
        command
    }

    /// `cargo` and what uses it, for wasm32-unknown-unknown.
    pub fn wasm_command(&self, program: &str) -> Command {
        let modules = self.workspace.root.join("node_modules");
        let mut command = self.command(program);
        command
            .env("WASM_BINDGEN_BIN", self.bindgen_bin.join("wasm-bindgen"))
            .env("WASM_OPT_BIN", modules.join("binaryen/bin/wasm-opt"))
            .env("ESBUILD_BIN", modules.join("esbuild/bin/esbuild"))
            // worker-build sets it, and macros read it without Cargo knowing: a build without it would differ unnoticed.
            .env("WASM_BINDGEN_USE_JS_SYS", "1")
            .env(
                "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER",
                self.bindgen_bin.join("wasm-bindgen-test-runner"),
            );
        self.wasm.apply(&mut command);
        command
    }

    /// Wrangler, which must neither ask questions nor report usage.
    pub fn wrangler(&self) -> Command {
        let mut command = self.command("wrangler");
        command.env("WRANGLER_SEND_METRICS", "false").env("CI", "1");
        command
    }
}
