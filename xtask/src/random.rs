//! Random secrets for local development.

use std::fs::File;
use std::io::Read;

use anyhow::{Context, Result};

/// As many random bytes, in hex.
pub fn hex(bytes: usize) -> Result<String> {
    let mut random = vec![0_u8; bytes];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut random))
        .context("no /dev/urandom")?;
    Ok(hex::encode(random))
}
