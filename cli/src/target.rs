//! Where the API is and what it is asked with: options, then the environment, then the profile of the nearest folder.
//!
//! A token goes only to an address that was named together with it. Otherwise a checkout from elsewhere could bring a
//! profile that has your token sent to somebody, and `SWARM_URL` alone would send a local token across the network.

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Deserialize;
use ureq::http::Uri;

use crate::failure::{Failure, Kind};

/// Where `cargo xtask dev` leaves the address and the token of the gateway it runs.
const PROFILE: &str = ".swarm/profile.json";

const NO_ADDRESS: &str = "no API address: start `cargo xtask dev`, or give --url or SWARM_URL";

/// An API and a token for it. It has no `Debug`, so that the token cannot be printed by accident.
pub struct Target {
    /// The address, without a slash at its end.
    pub url: String,
    /// The token.
    pub token: String,
    /// Whether the address is this machine.
    pub is_local: bool,
}

#[derive(Deserialize)]
struct Profile {
    url: String,
    token: String,
}

impl Target {
    /// Finds the API by what was given as options, the environment and the folder that we are in.
    pub fn find(url: Option<&str>, token: Option<&str>) -> Result<Self, Failure> {
        let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let url = url.map(str::to_owned).or_else(|| variable("SWARM_URL"));
        let token = token.map(str::to_owned).or_else(|| variable("SWARM_TOKEN"));
        let profile = env::current_dir().ok().and_then(|folder| nearest_profile(&folder));
        match (url, token, profile) {
            (Some(url), Some(token), _) => Self::new(&url, token),
            (Some(url), None, _) => {
                Err(Failure::new(Kind::Auth, format!("no token for {url}: set SWARM_TOKEN")))
            }
            (None, Some(_), Some(path)) => Err(Failure::usage(format!(
                "a token is given, but not for which address: give --url or SWARM_URL too, or unset SWARM_TOKEN to \
                 use {}",
                path.display()
            ))),
            (None, None, Some(path)) => {
                let profile = read_profile(&path)?;
                Self::new(&profile.url, profile.token)
            }
            (None, _, None) => Err(Failure::usage(NO_ADDRESS)),
        }
    }

    fn new(url: &str, token: String) -> Result<Self, Failure> {
        let url = url.trim().trim_end_matches('/').to_owned();
        let uri: Uri = url.parse().map_err(|_| not_an_address())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(not_an_address());
        };
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(not_an_address());
        }
        let is_local = is_this_machine(authority.host());
        match scheme {
            "https" => {}
            "http" if is_local => {}
            "http" => {
                return Err(Failure::usage(format!(
                    "http would send the token in the clear: use https://{authority}"
                )));
            }
            _ => return Err(not_an_address()),
        }
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Failure::new(Kind::Auth, "the token is not one: it is empty, or has spaces in it"));
        }
        Ok(Self { url, token, is_local })
    }
}

/// The address is not repeated, as it may hold a password.
fn not_an_address() -> Failure {
    Failure::usage("the API address is not one: it looks like https://cockpit.example.com")
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn nearest_profile(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().map(|ancestor| ancestor.join(PROFILE)).find(|path| path.is_file())
}

fn read_profile(path: &Path) -> Result<Profile, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::unexpected(format!("could not read {}: {error}", path.display())))?;
    // serde's own message may repeat parts of the file, and the token is in it.
    serde_json::from_str(&text).map_err(|_| {
        let path = path.display();
        Failure::usage(format!(
            "{path} has no \"url\" and \"token\": start `cargo xtask dev` to write it anew"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(url: &str, token: &str) -> Option<Kind> {
        Target::new(url, token.to_owned()).err().map(|failure| failure.kind())
    }

    #[test]
    fn a_token_is_sent_by_https_or_to_this_machine() {
        for good in [
            "https://a.example",
            "http://127.0.0.1:8787",
            "http://localhost/",
            "http://[::1]:1",
            "https://a/b/",
        ] {
            assert_eq!(kind(good, "t"), None, "{good}");
        }
        for bad in [
            "http://a.example",
            "http://localhost.example",
            "ftp://localhost",
            "localhost:1",
            "/api",
            "",
            "https://",
            "https://user:secret@a.example",
            "https://a.example/?q",
        ] {
            assert_eq!(kind(bad, "t"), Some(Kind::Usage), "{bad}");
        }
    }

    #[test]
    fn a_password_in_an_address_is_not_repeated() {
        let failure = Target::new("https://user:secret@a.example", "t".to_owned()).err().unwrap();
        assert!(!failure.message().contains("secret"));
    }

    #[test]
    fn a_token_that_no_header_can_carry_is_refused_without_showing_it() {
        for token in ["", "a b", "a\nb", "ä"] {
            assert_eq!(kind("https://a.example", token), Some(Kind::Auth));
        }
        let failure = Target::new("https://a.example", "secret token".to_owned()).err().unwrap();
        assert!(!failure.message().contains("secret"));
    }

    #[test]
    fn the_end_of_the_address_is_its_last_name() {
        assert_eq!(
            Target::new("https://a.example/x/", "t".to_owned()).ok().unwrap().url,
            "https://a.example/x"
        );
    }
}
