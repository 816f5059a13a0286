//! The cockpit's API over HTTP: requests with the token, answers as values or as failures.

mod events;
mod incidents;
mod page;
mod record;
mod refusal;
mod rejected;
mod replays;
mod whoami;

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::http::Response;
use ureq::{Agent, Body};

pub use self::events::{Dispatch, Event, EventDetails, Followed};
pub use self::incidents::{Details, Incident};
pub use self::page::Page;
pub use self::record::Record;
pub use self::rejected::{Count, Rejected, RejectedDetails, Reverified};
pub use self::replays::{Replay, ReplayOfMany};

use self::refusal::{not_the_api, refusal, unreachable};
use crate::failure::Failure;
use crate::target::Target;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The longest that the API lets a request run, with time to spare for a slow network.
const ANSWER_LIMIT: Duration = Duration::from_mins(1);

/// Larger than any answer: a payload in JSON, each byte of which may become six.
const ANSWER_BYTES_MAX: u64 = 200 * 1024 * 1024;

/// The API of one gateway.
pub struct Api {
    agent: Agent,
    target: Target,
    authorization: String,
}

impl Api {
    /// The API at this address.
    pub fn of(target: Target) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // A redirect leads to a page for logging in, and the token must not follow it anywhere.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(CONNECT_LIMIT))
            .timeout_global(Some(ANSWER_LIMIT))
            .user_agent(concat!("swarm-cli/", env!("CARGO_PKG_VERSION")));
        // A proxy is for the world outside, whatever the environment says of it.
        let config = if target.is_local { config.proxy(None) } else { config };
        let authorization = format!("Bearer {}", target.token);
        Self { agent: config.build().new_agent(), target, authorization }
    }

    /// The address, without its path.
    pub fn url(&self) -> &str {
        &self.target.url
    }

    fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<T, Failure> {
        self.parsed(&self.get_bytes(path, query)?)
    }

    /// An answer as it came.
    fn get_bytes(&self, path: &str, query: &[(&str, String)]) -> Result<Vec<u8>, Failure> {
        let query = query.iter().map(|(name, value)| (*name, value.as_str()));
        let request = self.agent.get(self.address(path)).query_pairs(query);
        self.read(request.header("authorization", &self.authorization).call())
    }

    fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Failure> {
        let body = serde_json::to_vec(body)
            .map_err(|error| Failure::unexpected(format!("could not write the request: {error}")))?;
        let request = self.agent.post(self.address(path)).header("content-type", "application/json");
        self.parsed(&self.read(request.header("authorization", &self.authorization).send(&body))?)
    }

    fn address(&self, path: &str) -> String {
        format!("{}/api/v1/{path}", self.target.url)
    }

    fn read(&self, outcome: Result<Response<Body>, ureq::Error>) -> Result<Vec<u8>, Failure> {
        let lost = |error: ureq::Error| unreachable(&self.target, &error);
        let mut response = outcome.map_err(lost)?;
        let status = response.status();
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec().map_err(lost)?;
        if !status.is_success() {
            return Err(refusal(&self.target, status.as_u16(), &body));
        }
        Ok(body)
    }

    fn parsed<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, Failure> {
        serde_json::from_slice(body).map_err(|error| not_the_api(&self.target, &error.to_string()))
    }
}
