//! `swarm listen`: events as they arrive, forwarded to a server on this machine as HTTP requests in the shape of
//! CloudEvents: the payload to the byte, and what is known of it in headers.

mod request;
mod target;

use std::thread;
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;
use serde_json::value::to_raw_value;
use swarm_domain::events::EventFilterInput;

use self::request::headers;
use self::target::Target;
use crate::api::{Api, Event, EventDetails};
use crate::arguments::Globals;
use crate::commands::events::EventFilterArguments;
use crate::failure::{Failure, Kind};
use crate::following::Following;
use crate::notes;
use crate::output::escape;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  swarm listen 3000
  swarm listen http://localhost:3000/events --type billing.invoice.paid
  swarm listen 3000 --topic billing.events --since 1h

Each event is a POST of its payload with the headers ce-id, ce-type, ce-source, ce-subject, ce-time, ce-tenantid and
traceparent. Any answer counts; while the server does not answer at all, the event waits. The deliveries of the gateway go on
beside this and are not touched by it.";

/// How long to wait before an event is offered again to a server that does not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// Where events go, and which.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Listen {
    /// A port of this machine, or a URL.
    #[arg(value_name = "PORT|URL", value_parser = target::parse)]
    target: Target,
    #[command(flatten)]
    filter: EventFilterArguments,
    /// Only those that go to this topic.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    topic: Option<String>,
    /// Begin where an earlier run ended.
    #[arg(long, conflicts_with = "since")]
    cursor: Option<String>,
}

/// An event that was forwarded.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Forwarded<'a> {
    event_id: &'a str,
    tenant_id: &'a str,
    r#type: &'a str,
    status: u16,
}

impl Listen {
    /// Forwards events until somebody stops it.
    pub fn run(self, globals: &Globals) -> Result<(), Failure> {
        let more = EventFilterInput { topic: self.topic, ..EventFilterInput::default() };
        let filter = self.filter.checked(more)?;
        let mut session = Session::open(globals)?;
        let mut following = Following::begin(filter, self.cursor)?;
        notes::note(&format!("waiting for events to forward to {}; Ctrl-C ends it", self.target.url));
        while !session.out.is_closed() {
            for event in following.next(&session.api)? {
                let status = forward(&session.api, &self.target, &event.value)?;
                show(&mut session, &event.value, status)?;
            }
        }
        Ok(())
    }
}

/// The server's status. An event that is gone meanwhile has none.
fn forward(api: &Api, target: &Target, event: &Event) -> Result<Option<u16>, Failure> {
    let read = patiently(|| {
        let details = api.event(&event.tenant_id, &event.event_id)?.value;
        let body = body(api, &details)?;
        Ok((details, body))
    });
    let (details, body) = match read {
        Ok(read) => read,
        Err(failure) if failure.kind() == Kind::NotFound => return Ok(None),
        Err(failure) => return Err(failure),
    };
    let headers = headers(&details);
    patiently(|| target.post(&headers, &body)).map(Some)
}

fn body(api: &Api, details: &EventDetails) -> Result<Vec<u8>, Failure> {
    match &details.payload {
        Some(payload) => Ok(payload.clone().into_bytes()),
        None => api.payload(&details.event.tenant_id, &details.event.event_id),
    }
}

/// Does something again and again until the other side answers.
fn patiently<T>(attempt: impl Fn() -> Result<T, Failure>) -> Result<T, Failure> {
    let mut has_told = false;
    loop {
        match attempt() {
            Err(failure) if failure.kind() == Kind::Unavailable => {
                if !has_told {
                    notes::note(&format!("{}; trying again until it answers", failure.message()));
                }
                has_told = true;
                thread::sleep(PAUSE);
            }
            outcome => return outcome,
        }
    }
}

fn show(session: &mut Session, event: &Event, status: Option<u16>) -> Result<(), Failure> {
    let Some(status) = status else {
        notes::note(&format!("{} is gone from the ledger", event.event_id));
        return Ok(());
    };
    if session.out.is_json() {
        let forwarded = Forwarded {
            event_id: &event.event_id,
            tenant_id: &event.tenant_id,
            r#type: &event.r#type,
            status,
        };
        let document = to_raw_value(&forwarded).map_err(|error| Failure::unexpected(error.to_string()))?;
        return session.out.json(&document);
    }
    let text = format!("{}  {}  {}  {status}", event.tenant_id, event.r#type, event.event_id);
    session.out.text(&format!("{}\n", escape::line(&text)))
}
