//! `cargo xtask trigger`: sends events as a provider would, signed, to the local gateway or to any other address.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::Value;
use swarm_trigger::{Sample, Trigger, Wrong, with_field};
use swarm_verify::Outgoing;
use time::OffsetDateTime;
use ureq::Agent;

use crate::dev;
use crate::random;
use crate::table::Table;
use crate::workspace::Workspace;

/// Random bytes that make an event a new one.
const TOKEN_BYTES: usize = 12;

/// Options of `cargo xtask trigger`.
#[derive(Args)]
pub struct Options {
    /// The provider: github, shopify, …
    provider: String,
    /// The provider's type of the event: push, invoice.paid, …; any if left out.
    r#type: Option<String>,
    /// Whose event it is, by the path.
    #[arg(long)]
    tenant: Option<String>,
    /// How many events, each a new one.
    #[arg(long, default_value_t = 1)]
    count: u32,
    /// Sets a field of the JSON body, such as `/data/object/amount=1999`; the value is JSON, or else text.
    #[arg(long = "field", value_name = "POINTER=VALUE")]
    fields: Vec<String>,
    /// Sends something that must not be taken.
    #[arg(long, value_enum)]
    bad: Option<Bad>,
    /// Where the gateway takes webhooks.
    #[arg(long, default_value = "http://127.0.0.1:8787/webhook")]
    url: String,
    /// The secret to sign with; by default the one that `cargo xtask dev` has made up.
    #[arg(long, env = "SWARM_TRIGGER_SECRET", hide_env_values = true)]
    secret: Option<String>,
}

/// What is wrong with a request.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Bad {
    /// It is signed with another secret.
    Signature,
    /// It was signed a month ago.
    Stale,
    /// Its body was changed after it was signed.
    Body,
}

/// Sends the events and says what was answered. Fails if a good one is refused or a bad one is taken.
pub fn command(workspace: &Workspace, options: &Options) -> Result<()> {
    let secret = match &options.secret {
        Some(secret) => secret.clone(),
        None => dev::webhook_secret(workspace, &options.provider)?,
    };
    let trigger = Trigger::of(&options.provider, &secret)?;
    let sample = Sample::find(&options.provider, options.r#type.as_deref())?;
    let agent: Agent = Agent::config_builder().http_status_as_error(false).build().into();
    let url = match &options.tenant {
        Some(tenant) => format!("{}/{}/{tenant}", options.url, options.provider),
        None => format!("{}/{}", options.url, options.provider),
    };
    let mut table = Table::new(["event", "HTTP", "answer"]);
    let mut surprises = 0;
    for _ in 0..options.count {
        let now_unix = OffsetDateTime::now_utc().unix_timestamp();
        let new = sample.renewed(&url, now_unix, &random::hex(TOKEN_BYTES)?);
        let request =
            options.fields.iter().try_fold(new.request, |request, field| with_field(request, field))?;
        let request = match options.bad {
            None => trigger.signed(request, now_unix),
            Some(bad) => trigger.wrong(request, now_unix, bad.into())?,
        };
        let (status, answer) = send(&agent, request)?;
        let is_taken = (200..300).contains(&status);
        surprises += u32::from(is_taken == options.bad.is_some());
        let id = if new.id.is_empty() { "without an id".to_owned() } else { new.id };
        table.row([id, status.to_string(), answer]);
    }
    println!("{table}");
    if surprises > 0 {
        bail!("{surprises} of {} were not answered as they should be", options.count);
    }
    Ok(())
}

impl From<Bad> for Wrong {
    fn from(bad: Bad) -> Self {
        match bad {
            Bad::Signature => Self::Signature,
            Bad::Stale => Self::Stale,
            Bad::Body => Self::Body,
        }
    }
}

/// Status and body of the answer, which is short.
fn send(agent: &Agent, request: Outgoing) -> Result<(u16, String)> {
    let mut post = agent.post(&request.url);
    // What was signed now stands behind what the sample had under the same name.
    let headers: BTreeMap<_, _> = request.headers.iter().map(|(name, value)| (*name, value)).collect();
    for (name, value) in headers {
        post = post.header(name, value);
    }
    let mut response = post.send(&request.body[..]).with_context(|| {
        format!("nobody listens at {}; `cargo xtask dev` starts the gateway", request.url)
    })?;
    let text = response.body_mut().read_to_string()?;
    let json: Value = serde_json::from_str(&text).unwrap_or_default();
    let code = json.pointer("/error/code").and_then(Value::as_str).map(str::to_owned);
    let statuses = json.pointer("/events").and_then(Value::as_array).map(|events| {
        let status =
            |event: &Value| event.pointer("/status").and_then(Value::as_str).unwrap_or_default().to_owned();
        events.iter().map(status).collect::<Vec<_>>().join(", ")
    });
    Ok((response.status().as_u16(), code.or(statuses).unwrap_or(text)))
}
