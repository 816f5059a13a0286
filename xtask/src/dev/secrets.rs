//! The `.dev.vars` files that wrangler reads beside a config in local development. They are not committed; dev makes them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};

use crate::operator::Operator;
use crate::random;
use crate::workspace::Workspace;

/// Read by every Worker whose config lies in wrangler/adapters.
const ADAPTERS: &str = "wrangler/adapters/.dev.vars";

/// Read by core, sweeper, cockpit, alerter, keeper and archiver, whose configs lie in wrangler.
const PLATFORM: &str = "wrangler/.dev.vars";

const STRIPE_SECRET: &str = "STRIPE_WEBHOOK_SECRET";

/// Whom the cockpit lets in.
pub const OPERATOR_TOKENS: &str = "OPERATOR_TOKENS";

/// How long a dispatch may be in transit before the sweeper sends it again. The local broker forgets messages when it
/// stops, so waiting a day, as production does, would make a local event look lost.
const IN_TRANSIT: &str = "IN_TRANSIT_DEADLINE_SECONDS";

/// The local signing secret of Stripe's adapter, made up at the first call and the same from then on.
pub fn stripe_secret(workspace: &Workspace) -> Result<String> {
    let path = workspace.root.join(ADAPTERS);
    if let Some(secret) = read(&path, STRIPE_SECRET) {
        return Ok(secret);
    }
    let secret = format!("whsec_{}", random::hex(24)?);
    write(&path, STRIPE_SECRET, &secret)?;
    Ok(secret)
}

/// Sets the local in-transit deadline.
pub fn set_in_transit_seconds(workspace: &Workspace, seconds: u32) -> Result<()> {
    write(&workspace.root.join(PLATFORM), IN_TRANSIT, &seconds.to_string())
}

/// Lets the operator into the local cockpit, and nobody else.
pub fn set_operator(workspace: &Workspace, operator: &Operator) -> Result<()> {
    write(&workspace.root.join(PLATFORM), OPERATOR_TOKENS, &operator.tokens().to_string())
}

fn read(path: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
    Some(value.trim_matches(['"', '\'']).to_owned())
}

/// Sets one variable and keeps the others, which may be the user's own. No value has a single quote in it.
fn write(path: &Path, name: &str, value: &str) -> Result<()> {
    let assignment = format!("{name}=");
    let old = fs::read_to_string(path).unwrap_or_default();
    let wanted = format!("{assignment}'{value}'");
    let mut lines: Vec<&str> = old.lines().collect();
    // In its place, so that setting the same again leaves the file as it is: wrangler restarts Workers when it changes.
    match lines.iter_mut().find(|line| line.starts_with(&assignment)) {
        Some(line) => *line = &wanted,
        None => lines.push(&wanted),
    }
    let text = format!("{}\n", lines.join("\n"));
    if text != old {
        fs::write(path, text).with_context(|| format!("make {} writable", path.display()))?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_one_variable_keeps_the_others() {
        let path = std::env::temp_dir().join(format!("xtask-vars-{}", std::process::id()));
        fs::write(&path, "MINE=1\nA=\"old\"\nMINE_TOO=2").unwrap();
        write(&path, "A", "new").unwrap();
        write(&path, "C", r#"[{"a":1}]"#).unwrap();
        write(&path, "A", "newer").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "MINE=1\nA='newer'\nMINE_TOO=2\nC='[{\"a\":1}]'\n");
        assert_eq!(read(&path, "A").as_deref(), Some("newer"));
        assert_eq!(read(&path, "B"), None);
        fs::remove_file(path).unwrap();
    }
}
