//! The `swarm` command as an operator runs it: the real program, which finds the gateway by its profile.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;
use crate::progress::Progress;
use crate::tools::Tools;
use crate::workspace::Workspace;

/// The program, and the folder in which it is run.
pub struct Swarm {
    program: PathBuf,
    folder: PathBuf,
}

impl Swarm {
    /// Builds the program. `folder` has a profile in it.
    pub fn build(workspace: &Workspace, tools: &Tools, progress: &Progress, folder: &Path) -> Result<Self> {
        let step = progress.step("compile swarm");
        let built = process::run(tools.command("cargo").args(["build", "--quiet", "--package", "swarm-cli"]));
        if let Err(error) = built {
            step.failed();
            return Err(error);
        }
        step.done("target/debug/swarm");
        Ok(Self { program: workspace.target_dir().join("debug/swarm"), folder: folder.to_owned() })
    }

    /// Runs a command, whose output is no terminal and therefore one JSON object a line. What it says when it fails becomes
    /// the error.
    pub fn run(&self, arguments: &[&str]) -> Result<Result<Vec<Value>, String>> {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.folder);
        // An operator's own gateway must not be meant.
        command.env_remove("SWARM_URL").env_remove("SWARM_TOKEN");
        let output = command.output().with_context(|| process::not_started(&command))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Ok(Err(format!("`swarm {}` failed ({}): {said}", arguments.join(" "), output.status)));
        }
        let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let objects: serde_json::Result<Vec<Value>> = lines.map(serde_json::from_slice).collect();
        Ok(objects.map_err(|error| format!("`swarm {}` wrote no JSON: {error}", arguments.join(" "))))
    }
}
