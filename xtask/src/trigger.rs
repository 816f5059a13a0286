//! `cargo xtask trigger`: `swarm trigger` with the secrets that `cargo xtask dev` has made up.

use std::env;

use anyhow::Result;
use clap::Args;
use swarm_verify::provider;

use crate::dev;
use crate::process;
use crate::tools::Tools;
use crate::workspace::Workspace;

/// Where `swarm trigger` finds the secret to sign with.
const SECRET: &str = "SWARM_TRIGGER_SECRET";

/// Options of `cargo xtask trigger`.
#[derive(Args)]
pub struct Options {
    /// The provider: github, shopify, …
    provider: String,
    /// The type of the event and the options of `cargo swarm trigger`: --count, --tenant, --field, --bad, --to.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

/// Sends events to the local gateway, or to any other with `--to` and the secret in the environment.
pub fn command(workspace: &Workspace, tools: &Tools, options: &Options) -> Result<()> {
    let mut swarm = tools.command("cargo");
    swarm.args(["run", "--quiet", "--package", "swarm-cli", "--", "trigger", &options.provider]);
    // Of a provider that nobody knows `swarm` says so.
    if env::var_os(SECRET).is_none() && provider(&options.provider).is_some() {
        swarm.env(SECRET, dev::webhook_secret(workspace, &options.provider)?);
    }
    process::run(swarm.args(&options.options))
}
