//! The operator of a local gateway: a random token, the hash of it that the cockpit knows, and the profile by which the
//! `swarm` command finds both.

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::http::THIS_MACHINE;
use crate::random;

/// The cockpit's secret that says whom it lets in.
pub const OPERATOR_TOKENS: &str = "OPERATOR_TOKENS";

/// Where `swarm` looks for the address and the token, in its folder and all above it.
const PROFILE: &str = ".swarm/profile.json";

/// What the log of operations calls whoever works with a local gateway.
const NAME: &str = "dev";

/// Bytes of a token, too many to guess.
const TOKEN_BYTES: usize = 32;

/// Somebody who may do everything.
pub struct Operator {
    token: String,
}

impl Operator {
    /// One with a new token.
    pub fn new() -> Result<Self> {
        Ok(Self { token: format!("swarm_{}", random::hex(TOKEN_BYTES)?) })
    }

    /// The one whose profile is in `folder`, or a new one. A profile for another gateway is the user's and is not touched.
    pub fn of_profile(folder: &Path) -> Result<Self> {
        let path = folder.join(PROFILE);
        let Ok(text) = fs::read_to_string(&path) else {
            return Self::new();
        };
        let profile: Value = serde_json::from_str(&text).unwrap_or_default();
        let field = |name: &str| profile.get(name).and_then(Value::as_str);
        match (field("url"), field("token")) {
            (Some(url), _) if !url.starts_with(&format!("{THIS_MACHINE}:")) => {
                bail!("{} belongs to another gateway; move it, so that dev can write its own", path.display())
            }
            (_, Some(token)) if !token.is_empty() => Ok(Self { token: token.to_owned() }),
            _ => Self::new(),
        }
    }

    /// What the cockpit's secret OPERATOR_TOKENS has to be.
    pub fn tokens(&self) -> Value {
        let sha256 = hex::encode(Sha256::digest(&self.token));
        json!([{ "name": NAME, "sha256": sha256, "scopes": ["read", "operate"] }])
    }

    /// Lets `swarm` find the API at `url`, from `folder` and all folders in it. Nobody but the user can read the token.
    pub fn write_profile(&self, folder: &Path, url: &str) -> Result<PathBuf> {
        let path = folder.join(PROFILE);
        let text = format!("{}\n", json!({ "url": url, "token": self.token }));
        let written = || -> std::io::Result<()> {
            fs::create_dir_all(path.parent().unwrap_or(folder))?;
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
            // The mode above is for a new file only.
            file.set_permissions(Permissions::from_mode(0o600))?;
            file.write_all(text.as_bytes())
        };
        written().with_context(|| format!("make {} writable", path.display()))?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join(".swarm")).unwrap();
        folder
    }

    #[test]
    fn a_token_outlives_a_start_and_only_its_user_can_read_it() {
        let folder = folder("profile");
        fs::write(folder.join(PROFILE), "{").unwrap();
        fs::set_permissions(folder.join(PROFILE), Permissions::from_mode(0o644)).unwrap();
        let first = Operator::of_profile(&folder).unwrap();
        let path = first.write_profile(&folder, "http://127.0.0.1:1").unwrap();
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        let second = Operator::of_profile(&folder).unwrap();
        assert_eq!(second.token, first.token);
        assert_ne!(Operator::new().unwrap().token, first.token);
        assert!(!first.tokens().to_string().contains(&first.token));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_profile_of_another_gateway_is_kept() {
        let folder = folder("others");
        let text = r#"{"url":"https://cockpit.example.com","token":"t"}"#;
        fs::write(folder.join(PROFILE), text).unwrap();
        assert!(Operator::of_profile(&folder).is_err());
        assert_eq!(fs::read_to_string(folder.join(PROFILE)).unwrap(), text);
        fs::remove_dir_all(folder).unwrap();
    }
}
