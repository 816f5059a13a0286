//! Runs `swarm` against a gateway that answers what a test tells it to.

#![allow(dead_code, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

pub mod gateway;
pub mod samples;
pub mod terminal;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use gateway::Gateway;

pub const TOKEN: &str = "token-of-ana";

/// A command that knows nothing of the environment that the tests run in, in a folder that has no profile above it.
pub fn swarm(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_swarm"));
    command.args(arguments).current_dir(env::temp_dir()).stdin(Stdio::null()).env("TERM", "xterm-256color");
    for name in ["SWARM_URL", "SWARM_TOKEN", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
}

/// A command that asks this gateway.
pub fn swarm_at(gateway: &Gateway, arguments: &[&str]) -> Command {
    let mut command = swarm(arguments);
    command.env("SWARM_URL", &gateway.url).env("SWARM_TOKEN", TOKEN);
    command
}

/// What a command did.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub fn run(command: &mut Command) -> Ran {
    let ran = Ran::from(command.output().unwrap());
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    ran
}

/// Runs a command against a gateway.
pub fn ask(gateway: &Gateway, arguments: &[&str]) -> Ran {
    run(&mut swarm_at(gateway, arguments))
}

/// A folder of its own, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("swarm-cli-test-{}-{number}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub fn path(&self, path: &str) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(&path).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(Path::new(&self.0));
    }
}
