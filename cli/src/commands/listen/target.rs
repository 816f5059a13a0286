//! The server that events are forwarded to.

use std::time::Duration;

use ureq::Agent;
use ureq::http::Uri;

use crate::failure::{Failure, Kind};

/// How long the server may take: somebody may have stopped it in a debugger.
const ANSWER_LIMIT: Duration = Duration::from_mins(10);

/// A server.
#[derive(Clone)]
pub struct Target {
    /// Its address.
    pub url: String,
    agent: Agent,
}

/// A port of this machine, or a URL.
pub fn parse(text: &str) -> Result<Target, String> {
    let wrong = || "say a port (3000) or a URL (http://localhost:3000/events)".to_owned();
    let url = match text.parse::<u16>() {
        Ok(0) => return Err(wrong()),
        Ok(port) => format!("http://127.0.0.1:{port}/"),
        Err(_) => text.to_owned(),
    };
    let uri: Uri = url.parse().map_err(|_| wrong())?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
        return Err(wrong());
    }
    let agent = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .timeout_global(Some(ANSWER_LIMIT))
        .user_agent(concat!("swarm-cli/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent();
    Ok(Target { url, agent })
}

impl Target {
    /// Sends an event and gives the status of the answer.
    pub fn post(&self, headers: &[(&str, String)], body: &[u8]) -> Result<u16, Failure> {
        let request = headers
            .iter()
            .fold(self.agent.post(&self.url), |request, (name, value)| request.header(*name, value));
        let answer = request.send(body);
        let lost = |error: ureq::Error| match error {
            ureq::Error::Http(error) => Failure::unexpected(format!("the event cannot be sent: {error}")),
            error => Failure::new(Kind::Unavailable, format!("{} does not answer: {error}", self.url)),
        };
        Ok(answer.map_err(lost)?.status().as_u16())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_or_a_url() {
        for (text, url) in [
            ("3000", "http://127.0.0.1:3000/"),
            ("http://localhost:3000/events?x=1", "http://localhost:3000/events?x=1"),
            ("https://dev.example", "https://dev.example"),
        ] {
            assert_eq!(parse(text).map(|target| target.url).as_deref(), Ok(url), "{text}");
        }
        for text in ["", "0", "70000", "localhost:3000", "/events", "ftp://localhost", "http://"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
