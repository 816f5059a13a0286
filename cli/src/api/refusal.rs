//! What an answer that is none becomes: a kind of failure, the API's own words, and the way out where there is one.

use serde::Deserialize;

use crate::failure::{Failure, Kind};
use crate::target::Target;

/// How much of an answer that is not the API's is shown, in characters.
const SHOWN_CHARS_MAX: usize = 200;

#[derive(Deserialize)]
struct Refusal {
    error: Reason,
}

#[derive(Deserialize)]
struct Reason {
    code: String,
    message: String,
}

/// An answer with a status other than success.
pub fn refusal(target: &Target, status: u16, body: &[u8]) -> Failure {
    let reason = serde_json::from_slice::<Refusal>(body).ok().map(|refusal| refusal.error);
    let Some(Reason { code, message }) = reason else {
        return without_reason(target, status, body);
    };
    let failure = |kind| Failure::new(kind, message.clone());
    match (status, code.as_str()) {
        (400, _) => failure(Kind::Usage),
        (401, _) => {
            failure(Kind::Auth).and("check SWARM_TOKEN, or --token, against the secret OPERATOR_TOKENS")
        }
        (403, "locked") => failure(Kind::Auth).and("set the secret OPERATOR_TOKENS of the cockpit"),
        (403, _) => failure(Kind::Auth).and("`swarm whoami` shows what this token may do"),
        (404, _) => failure(Kind::NotFound),
        (409, _) => failure(Kind::Refused),
        (429 | 502..=599, _) => failure(Kind::Unavailable),
        _ => Failure::unexpected(format!("{status} {code}: {message}")),
    }
}

/// Whatever stands between us and the API answers without its words.
fn without_reason(target: &Target, status: u16, body: &[u8]) -> Failure {
    let url = &target.url;
    match status {
        300..=399 => not_the_api(target, &format!("it redirects ({status}), as a page for logging in does")),
        401 | 403 => Failure::new(
            Kind::Auth,
            format!("{url} answers {status}, but not as the API: is it behind a login?"),
        ),
        429 | 502..=599 => Failure::new(Kind::Unavailable, format!("{url} cannot answer now ({status})")),
        _ => not_the_api(target, &format!("it answers {status}: {}", beginning(body))),
    }
}

/// An answer that the API does not give.
pub fn not_the_api(target: &Target, why: &str) -> Failure {
    Failure::unexpected(format!(
        "{} is not the API of a cockpit, or one of another version: {why}",
        target.url
    ))
}

/// No answer at all.
pub fn unreachable(target: &Target, error: &ureq::Error) -> Failure {
    let failure = Failure::new(Kind::Unavailable, format!("could not reach {}: {error}", target.url));
    if target.is_local { failure.and("is `cargo xtask dev` running?") } else { failure }
}

fn beginning(body: &[u8]) -> String {
    String::from_utf8_lossy(body).trim().chars().take(SHOWN_CHARS_MAX).collect()
}
