//! Where secrets are compared: in one place, in constant time, and each with each. A `Secret` cannot be compared otherwise, since
//! it implements neither `PartialEq` nor `Deref`; what is left to see is that nobody compares its text.

#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::{Path, PathBuf};

/// The file with the one comparison.
const HOME: &str = "signature.rs";
/// What turns a secret or a keyed digest into something that could be compared.
const EXPOSING: [&str; 5] = ["expose()", "hmac_sha256(", "hmac_sha512(", "hmac_sha1(", "finalize()"];

/// Every source file with its text, as far as it is no test.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources.extend(self::sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned();
            sources.push((path, code));
        }
    }
    sources
}

fn all() -> Vec<(PathBuf, String)> {
    let all = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(all.len() > 50, "the sources are somewhere else");
    all
}

#[test]
fn nobody_compares_what_a_secret_is_or_makes() {
    for (path, code) in all() {
        for (number, line) in code.lines().enumerate() {
            let exposes = EXPOSING.iter().any(|exposing| line.contains(exposing));
            let compares = ["==", "!=", ".eq(", ".ne(", ".cmp(", "starts_with(", "contains("];
            let compares = compares.iter().any(|operator| line.contains(operator));
            assert!(!(exposes && compares), "{}:{}: {line}", path.display(), number + 1);
        }
    }
}

#[test]
fn constant_time_has_one_home() {
    for (path, code) in all() {
        let is_home = path.file_name().is_some_and(|name| name == HOME);
        let has_it = code.contains("ct_eq") || code.contains("subtle::");
        assert_eq!(has_it, is_home, "{}", path.display());
    }
}

#[test]
fn the_comparison_looks_at_every_pair() {
    let code = all().into_iter().find(|(path, _)| path.ends_with(HOME)).unwrap().1;
    for name in ["pub fn any_equal", "pub fn require_match"] {
        let body = code.split(name).nth(1).unwrap().split("\n}\n").next().unwrap();
        assert!(body.contains(".fold("), "{name} goes through all");
        for early in [".any(", ".find(", ".all(", "break", "||", "&&"] {
            assert!(!body.contains(early), "{name} may end early by {early}");
        }
    }
}
