//! The `.dev.vars` files that wrangler reads beside a config in local development. They are not committed; dev makes them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};

use swarm_verify::{providers, signer};

use crate::random;
use crate::workspace::Workspace;

/// Read by the adapter of local development.
const ADAPTERS: &str = "xtask/all-providers/.dev.vars";

/// Read by core, sweeper, alerter, keeper, archiver and rejections, whose configs lie in wrangler.
const PLATFORM: &str = "wrangler/.dev.vars";

/// What the local adapter serves: every provider, where a deployed one serves its own.
const PROVIDERS: &str = "PROVIDERS";

/// How long a dispatch may be in transit before the sweeper sends it again. The local broker forgets messages when it
/// stops, so waiting a day, as production does, would make a local event look lost.
pub const IN_TRANSIT: &str = "IN_TRANSIT_DEADLINE_SECONDS";

/// The local secret of a provider, made up at the first call and the same from then on. Its hex digits are as good to providers
/// that want hex or base64 as they are to those that want text.
pub fn webhook_secret(workspace: &Workspace, provider: &str) -> Result<String> {
    let path = workspace.root.join(ADAPTERS);
    let name = format!("{}_WEBHOOK_SECRET", provider.to_ascii_uppercase());
    if let Some(secret) = read(&path, &name) {
        return Ok(secret);
    }
    let prefix = match provider {
        "stripe" => "whsec_",
        // Its secret is a login.
        "postmark" => "swarm:",
        _ => "",
    };
    let secret = format!("{prefix}{}", random::hex(32)?);
    write(&path, &name, &secret)?;
    Ok(secret)
}

/// Has the local adapter serve every provider whose secret is shared, each with a secret of its own.
pub fn serve_all_providers(workspace: &Workspace) -> Result<()> {
    let names: Vec<_> = providers().iter().map(|provider| provider.name()).collect();
    for name in names.iter().filter(|name| signer(name).is_some()) {
        webhook_secret(workspace, name)?;
    }
    write(&workspace.root.join(ADAPTERS), PROVIDERS, &names.join(" "))
}

/// Sets the local in-transit deadline.
pub fn set_in_transit_seconds(workspace: &Workspace, seconds: u32) -> Result<()> {
    write(&workspace.root.join(PLATFORM), IN_TRANSIT, &seconds.to_string())
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
