//! Where things are: the checkout, the cache that all checkouts of a user share, and the stamps that say whether a step
//! was already done for exactly these inputs.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

/// The two folders that every command works in.
pub struct Workspace {
    /// The checkout.
    pub root: PathBuf,
    /// Tools and toolchains, shared by all checkouts, so that a second clone is set up in seconds.
    pub cache: PathBuf,
}

impl Workspace {
    /// Finds both folders, and makes the cache if it is not there yet.
    pub fn locate() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("xtask lies in a folder of the checkout")?
            .to_path_buf();
        let caches = match std::env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()) {
            Some(dir) => PathBuf::from(dir),
            None => std::env::home_dir().context("set HOME or XDG_CACHE_HOME")?.join(".cache"),
        };
        let cache = caches.join("swarm-gateway");
        for folder in ["logs", "locks", "tmp"] {
            fs::create_dir_all(cache.join(folder))
                .with_context(|| format!("make {} writable for this user", cache.display()))?;
        }
        Ok(Self { root, cache })
    }

    /// Where Cargo puts what it builds for this checkout.
    pub fn target_dir(&self) -> PathBuf {
        match std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty()) {
            Some(dir) => self.root.join(dir),
            None => self.root.join("target"),
        }
    }

    /// The version of `package` in Cargo.lock, for tools that must be of the same version as a crate.
    pub fn locked_version(&self, package: &str) -> Result<String> {
        let lock =
            fs::read_to_string(self.root.join("Cargo.lock")).context("run `cargo generate-lockfile`")?;
        let name = format!("name = \"{package}\"");
        let mut lines = lock.lines().skip_while(|line| *line != name).skip(1);
        let version = lines.next().and_then(|line| line.strip_prefix("version = \""));
        match version.and_then(|rest| rest.strip_suffix('"')) {
            Some(version) => Ok(version.to_owned()),
            None => bail!("Cargo.lock has no `{package}`; a Worker crate of the workspace must depend on it"),
        }
    }

    /// Waits until no other xtask of this user does the same step, and keeps others out until the file is dropped.
    pub fn lock(&self, step: &str) -> Result<File> {
        self.acquire(step, step)
    }

    /// The same for a step that concerns only this checkout.
    pub fn lock_here(&self, step: &str) -> Result<File> {
        let checkout = fingerprint([self.root.as_os_str().as_encoded_bytes()]);
        self.acquire(step, &format!("{step}-{}", checkout.get(..12).unwrap_or_default()))
    }

    fn acquire(&self, step: &str, name: &str) -> Result<File> {
        let path = self.cache.join("locks").join(name);
        let file = File::create(&path).with_context(|| format!("make {} writable", path.display()))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => eprintln!("  waiting for another xtask to finish '{step}' …"),
            // Some file systems only know the call that waits, and its error says more.
            Err(TryLockError::Error(_)) => {}
        }
        file.lock().with_context(|| format!("could not lock {}", path.display()))?;
        Ok(file)
    }
}

/// A short hash over parts, to tell whether inputs changed since a stamp was written.
pub fn fingerprint<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        let bytes = part.as_ref();
        // The length keeps ("ab", "c") and ("a", "bc") apart.
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
    hex::encode(hasher.finalize())
}

/// Whether the stamp at `path` says `value`.
pub fn is_stamped(path: &Path, value: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|found| found == value)
}

/// The files of `folder` with this extension, in the order of their names.
pub fn files_with_extension(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("no folder {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.is_file() && path.extension() == Some(OsStr::new(extension)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_keeps_its_parts_apart() {
        assert_ne!(fingerprint(["ab", "c"]), fingerprint(["a", "bc"]));
        assert_eq!(fingerprint(["ab", "c"]), fingerprint(["ab", "c"]));
    }
}
