//! The configs of the smoke run: those that are deployed, but for a token of its own and for shorter waits where waiting is
//! all that would happen.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::config::{COCKPIT, Config};
use crate::operator::{OPERATOR_TOKENS, Operator};
use crate::workspace::Workspace;

/// The Worker whose failure the run brings about.
const BILLING: &str = "wrangler/consumers/billing-invoices.jsonc";

/// How often its messages come again before it gives them up. Five times, as deployed, take two and a half minutes.
const RETRIES: u32 = 1;

/// Where each Worker's config is.
pub fn prepare(workspace: &Workspace, folder: &Path, operator: &Operator) -> Result<Vec<PathBuf>> {
    let mut configs = Config::local(workspace)?;
    for config in &mut configs {
        if config.path.ends_with(BILLING) {
            set(config, "/queues/consumers/0/max_retries", json!(RETRIES))?;
            set(config, "/vars/QUEUE_MAX_RETRIES", json!(RETRIES.to_string()))?;
        } else if config.path.ends_with(COCKPIT) {
            config.set_variable(OPERATOR_TOKENS, operator.tokens());
        }
    }
    configs.into_iter().map(|config| config.place(workspace, folder)).collect()
}

fn set(config: &mut Config, at: &str, value: Value) -> Result<()> {
    let shown = config.path.display().to_string();
    *config.json.pointer_mut(at).with_context(|| format!("{shown} has no {at}"))? = value;
    Ok(())
}
