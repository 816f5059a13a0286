//! `cargo xtask trigger`: sends events as a provider would, signed, to the local gateway or to any other address.

mod sample;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::Value;
use swarm_verify::{Outgoing, Sign, provider, providers, signer};
use time::OffsetDateTime;
use ureq::Agent;

use crate::dev;
use crate::random;
use crate::table::Table;
use crate::workspace::Workspace;

use self::sample::Sample;

/// How old a stale signature is. No provider's tolerance is as long by default.
const STALE_SECONDS: i64 = 30 * 24 * 60 * 60;

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
    let sign = signer_of(&options.provider)?;
    let secret = match &options.secret {
        Some(secret) => secret.clone(),
        None => dev::webhook_secret(workspace, &options.provider)?,
    };
    let sample = Sample::find(workspace, &options.provider, options.r#type.as_deref())?;
    let agent: Agent = Agent::config_builder().http_status_as_error(false).build().into();
    let url = match &options.tenant {
        Some(tenant) => format!("{}/{}/{tenant}", options.url, options.provider),
        None => format!("{}/{}", options.url, options.provider),
    };
    let mut table = Table::new(["event", "HTTP", "answer"]);
    let mut surprises = 0;
    for _ in 0..options.count {
        let now_unix = OffsetDateTime::now_utc().unix_timestamp();
        let (id, request) = sample.request(&url, now_unix)?;
        let request = options.fields.iter().try_fold(request, |request, field| with_field(request, field))?;
        let (status, answer) = send(&agent, signed(request, sign, &secret, now_unix, options.bad)?)?;
        let is_taken = (200..300).contains(&status);
        surprises += u32::from(is_taken == options.bad.is_some());
        table.row([id, status.to_string(), answer]);
    }
    println!("{table}");
    if surprises > 0 {
        bail!("{surprises} of {} were not answered as they should be", options.count);
    }
    Ok(())
}

fn signer_of(name: &str) -> Result<Sign> {
    if provider(name).is_none() {
        let names: Vec<_> = providers().iter().map(|provider| provider.name()).collect();
        bail!("there is no provider '{name}'; there are {}", names.join(", "));
    }
    signer(name).with_context(|| format!("only {name} itself can sign its requests; its key is not shared"))
}

/// Signs a request, or makes it wrong in the way that was asked for.
fn signed(request: Outgoing, sign: Sign, secret: &str, now_unix: i64, bad: Option<Bad>) -> Result<Outgoing> {
    match bad {
        None => Ok(sign(request, secret, now_unix)),
        Some(Bad::Signature) => Ok(sign(request, &random::hex(32)?, now_unix)),
        Some(Bad::Stale) => {
            let stale = sign(request.clone(), secret, now_unix - STALE_SECONDS);
            if stale == sign(request, secret, now_unix) {
                bail!("the provider signs no time, so nothing can be stale");
            }
            Ok(stale)
        }
        Some(Bad::Body) => {
            let mut signed = sign(request, secret, now_unix);
            let digit = signed.body.iter_mut().rev().find(|byte| byte.is_ascii_alphanumeric());
            *digit.context("the body holds nothing to change")? ^= 1;
            Ok(signed)
        }
    }
}

/// Sets a field of a JSON body.
fn with_field(mut request: Outgoing, field: &str) -> Result<Outgoing> {
    let (pointer, value) = field.split_once('=').context("a field is POINTER=VALUE, such as /data/id=7")?;
    let value: Value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    let mut body: Value = serde_json::from_slice(&request.body).context("the body is not JSON")?;
    match body.pointer_mut(pointer) {
        Some(place) => *place = value,
        None => {
            let (parent, name) = pointer.rsplit_once('/').context("a pointer begins with /")?;
            let parent = body.pointer_mut(parent).and_then(Value::as_object_mut);
            parent
                .with_context(|| format!("the body has no object for {pointer}"))?
                .insert(name.to_owned(), value);
        }
    }
    request.body = serde_json::to_vec(&body)?;
    Ok(request)
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
