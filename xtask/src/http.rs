//! HTTP to this machine: requests to the local gateway as a provider makes them, and to wrangler's explorer API.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use ureq::Agent;

/// Where wrangler dev answers questions about its local storage.
const EXPLORER: &str = "/cdn-cgi/local/explorer/api";

/// Where everything listens that runs here.
pub const THIS_MACHINE: &str = "http://127.0.0.1";

/// Longer than any request takes in local development.
const TIMEOUT: Duration = Duration::from_secs(60);

/// As long as the platform lets a cron run.
const CRON_TIMEOUT: Duration = Duration::from_mins(15);

/// One local gateway.
#[derive(Clone)]
pub struct Gateway {
    agent: Agent,
    base: String,
}

/// What an HTTP request was answered with.
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The body, whatever it is.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON, or null.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

impl Gateway {
    /// The gateway that listens at `port` of this machine.
    pub fn at(port: u16) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            // A proxy is for the world outside.
            .proxy(None)
            .build();
        Self { agent: config.new_agent(), base: format!("{THIS_MACHINE}:{port}") }
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// A GET request.
    pub fn get(&self, path: &str) -> Result<Answer> {
        let mut response = self.agent.get(self.url(path)).call().with_context(|| format!("GET {path}"))?;
        let status = response.status().as_u16();
        Ok(Answer { status, body: response.body_mut().read_to_vec()? })
    }

    /// A POST request with a JSON body, whatever the bytes really are.
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Answer> {
        self.post_within(TIMEOUT, path, headers, body)
    }

    fn post_within(
        &self,
        limit: Duration,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer> {
        let mut request = self.agent.post(self.url(path)).config().timeout_global(Some(limit)).build();
        for (name, value) in headers.iter().chain(&[("content-type", "application/json")]) {
            request = request.header(*name, *value);
        }
        let mut response = request.send(body).with_context(|| format!("POST {path}"))?;
        let status = response.status().as_u16();
        Ok(Answer { status, body: response.body_mut().read_to_vec()? })
    }

    /// Starts a Worker's cron handler. Unlike `/cdn-cgi/local/scheduled` this reaches every Worker of the process.
    pub fn fire_cron(&self, worker: &str, cron: &str) -> Result<()> {
        let body = json!({ "cron": cron }).to_string();
        let path = format!("{EXPLORER}/local/scheduled?worker={worker}");
        let answer = self.post_within(CRON_TIMEOUT, &path, &[], body.as_bytes())?;
        let outcome = answer.json();
        if answer.status != 200 || outcome.pointer("/result/outcome") != Some(&json!("ok")) {
            bail!("cron of {worker} failed: {}", String::from_utf8_lossy(&answer.body));
        }
        Ok(())
    }

    /// Runs one SQL statement on a local D1 database; the answer has one list of values per row.
    pub fn query(&self, database: &str, sql: &str) -> Result<Vec<Vec<Value>>> {
        let body = json!({ "sql": sql }).to_string();
        let answer = self.post(&format!("{EXPLORER}/d1/database/{database}/raw"), &[], body.as_bytes())?;
        let json = answer.json();
        let Some(rows) = json.pointer("/result/0/results/rows").and_then(Value::as_array) else {
            bail!("query of {database} failed: {}", String::from_utf8_lossy(&answer.body));
        };
        Ok(rows.iter().map(|row| row.as_array().cloned().unwrap_or_default()).collect())
    }

    /// The keys of the objects in a local R2 bucket.
    pub fn object_keys(&self, bucket: &str) -> Result<Vec<String>> {
        let answer = self.get(&format!("{EXPLORER}/r2/buckets/{bucket}/objects?per_page=1000"))?;
        let json = answer.json();
        let Some(objects) = json.pointer("/result").and_then(Value::as_array) else {
            bail!("list of {bucket} failed: {}", String::from_utf8_lossy(&answer.body));
        };
        Ok(objects.iter().filter_map(|object| object["key"].as_str().map(str::to_owned)).collect())
    }

    /// The bytes of an object in a local R2 bucket, if the bucket has it.
    pub fn object(&self, bucket: &str, key: &str) -> Result<Option<Vec<u8>>> {
        let encoded: String = key.bytes().map(percent_encoded).collect();
        let answer = self.get(&format!("{EXPLORER}/r2/buckets/{bucket}/objects/{encoded}"))?;
        match answer.status {
            200 => Ok(Some(answer.body)),
            404 => Ok(None),
            status => bail!("read of {bucket}/{key} failed with {status}"),
        }
    }
}

fn percent_encoded(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}
