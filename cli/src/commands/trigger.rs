//! `swarm trigger`: sends test events as a provider would, signed, to the webhook address of any gateway.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::to_raw_value;
use swarm_trigger::{Sample, Trigger as Player, Wrong, with_field};
use swarm_verify::Outgoing;
use ureq::Agent;

use crate::arguments::Globals;
use crate::failure::{Failure, Kind};
use crate::output::Output;
use crate::output::table::{Cell, Column, Table};
use crate::progress::Progress;
use crate::session::now;

const EXAMPLES: &str = "\
Examples:
  swarm trigger github push --count 3 --secret-file secret.txt
  swarm trigger stripe invoice.paid --tenant acme --field /data/object/amount_paid=1999
  swarm trigger slack --bad stale
  SWARM_TRIGGER_SECRET=… swarm trigger shopify --to https://hooks.example.com/webhook

Samples have made-up names, new ids and present times. Exit code 5 says that one was not answered as it should be.";

/// How long a gateway may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// What is sent, and where.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Trigger {
    /// The provider: github, shopify, …
    provider: String,
    /// The provider's type of the event: push, invoice.paid, …; the first sample if left out.
    r#type: Option<String>,
    /// Whose event it is, by the path.
    #[arg(long)]
    tenant: Option<String>,
    /// How many events, each a new one.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Set a field of the JSON body, such as /data/object/amount=1999; the value is JSON, or else text.
    #[arg(long = "field", value_name = "POINTER=VALUE")]
    fields: Vec<String>,
    /// Send something that must not be taken.
    #[arg(long, value_enum)]
    bad: Option<Bad>,
    /// Where the gateway takes webhooks, without the provider.
    #[arg(
        long = "to",
        value_name = "URL",
        env = "SWARM_WEBHOOK_URL",
        default_value = "http://127.0.0.1:8787/webhook"
    )]
    to: String,
    /// The file with the secret to sign with; else SWARM_TRIGGER_SECRET has it.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<std::path::PathBuf>,
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

/// What became of a request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    event: String,
    status: u16,
    answer: String,
    as_expected: bool,
}

impl Trigger {
    /// Sends the events and says what was answered.
    pub fn run(self, globals: &Globals) -> Result<(), Failure> {
        if globals.url.is_some() {
            return Err(Failure::usage(
                "--url is the cockpit's address; webhooks go --to an address of their own",
            ));
        }
        let secret = self.secret()?;
        let player =
            Player::of(&self.provider, &secret).map_err(|error| Failure::usage(error.to_string()))?;
        let sample = Sample::find(&self.provider, self.r#type.as_deref())
            .map_err(|error| Failure::usage(error.to_string()))?;
        let agent: Agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(ANSWER_LIMIT))
            .user_agent(concat!("swarm-cli/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        let progress = Progress::towards(self.count.into(), "events");
        let mut sent = Vec::new();
        for number in 1..=u64::from(self.count) {
            sent.push(self.send_one(&agent, &player, &sample)?);
            progress.at(number, Some(self.count.into()));
        }
        progress.clear();
        show(&mut Output::new(globals), &sent)?;
        match sent.iter().filter(|sent| !sent.as_expected).count() {
            0 => Ok(()),
            surprises => {
                let problem = format!("{surprises} of {} were not answered as they should be", self.count);
                Err(Failure::new(Kind::Refused, problem))
            }
        }
    }

    fn secret(&self) -> Result<String, Failure> {
        if let Some(path) = &self.secret_file {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
            return Ok(text.trim().to_owned());
        }
        std::env::var("SWARM_TRIGGER_SECRET").map_err(|_| {
            Failure::usage("no secret to sign with: set SWARM_TRIGGER_SECRET, or give --secret-file")
        })
    }

    fn send_one(&self, agent: &Agent, player: &Player<'_>, sample: &Sample) -> Result<Sent, Failure> {
        let usage = |error: String| Failure::usage(error);
        let now_unix = now().unix_ms().div_euclid(1000);
        let base = self.to.trim_end_matches('/');
        let url = match &self.tenant {
            Some(tenant) => [base, "/", &self.provider, "/", tenant].concat(),
            None => [base, "/", &self.provider].concat(),
        };
        let new = sample.renewed(&url, now_unix, &format!("{:032x}", fastrand::u128(..)));
        let set =
            |request, field: &String| with_field(request, field).map_err(|error| usage(error.to_string()));
        let request = self.fields.iter().try_fold(new.request, set)?;
        let request = match self.bad {
            None => player.signed(request, now_unix),
            Some(bad) => {
                player.wrong(request, now_unix, bad.into()).map_err(|error| usage(error.to_string()))?
            }
        };
        let (status, answer) = answer(agent, &request)?;
        let as_expected = (200..300).contains(&status) == self.bad.is_none();
        Ok(Sent { event: new.id, status, answer, as_expected })
    }
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

/// Status and, in short, what was answered: the code of a refusal, the statuses of events, or the text.
fn answer(agent: &Agent, request: &Outgoing) -> Result<(u16, String), Failure> {
    let lost = |error: ureq::Error| {
        Failure::new(Kind::Unavailable, format!("nobody takes webhooks at {}: {error}", request.url))
    };
    let post = request
        .headers
        .iter()
        .fold(agent.post(&request.url), |post, (name, value)| post.header(*name, value));
    let mut response = post.send(&request.body[..]).map_err(lost)?;
    let text = response.body_mut().read_to_string().map_err(lost)?;
    let json: Value = serde_json::from_str(&text).unwrap_or_default();
    let code = json.pointer("/error/code").and_then(Value::as_str).map(str::to_owned);
    let statuses = json.pointer("/events").and_then(Value::as_array).map(|events| {
        let statuses =
            events.iter().map(|event| event.pointer("/status").and_then(Value::as_str).unwrap_or("refused"));
        statuses.collect::<Vec<_>>().join(", ")
    });
    Ok((response.status().as_u16(), code.or(statuses).unwrap_or(text)))
}

fn show(out: &mut Output, sent: &[Sent]) -> Result<(), Failure> {
    if out.is_json() {
        return sent.iter().try_for_each(|sent| {
            let document = to_raw_value(sent).map_err(|error| Failure::unexpected(error.to_string()))?;
            out.json(&document)
        });
    }
    let mut table = Table::new(vec![
        Column::new("event"),
        Column::new("HTTP"),
        Column::new("answer").shrinks_to(12),
        Column::new("as expected"),
    ]);
    for sent in sent {
        let event = if sent.event.is_empty() { "without an id" } else { &sent.event };
        let expected = if sent.as_expected { "yes" } else { "no" };
        table.row([event, &sent.status.to_string(), &sent.answer, expected].map(Cell::new).into());
    }
    out.table(&table)
}
