//! `swarm events replay`: events to topics that are named, whether they were delivered before or not. One event goes to all
//! of its topics if none is named.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use swarm_domain::incident::{Filter, FilterInput};
use swarm_domain::replay::Of;
use swarm_domain::time::Timestamp;

use super::find::tenant_of;
use crate::api::ReplayOfMany;
use crate::arguments::{Globals, values};
use crate::commands::replays::{Many, Pace};
use crate::failure::{Failure, Kind};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  swarm events replay evt_1
  swarm events replay evt_1 --topic billing.events
  swarm events replay --tenant acme --type billing.invoice.paid --since 2h --topic billing.events --dry-run

Whatever was delivered is delivered once more: the consumers must be able to take it.";

/// Which events, and where they go.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Replay {
    /// Id of one event; or else give filters.
    #[arg(value_name = "EVENT_ID", value_parser = values::event_id)]
    event: Option<String>,
    /// The topics to which they go.
    #[arg(long = "topic", value_name = "TOPIC", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    topics: Vec<String>,
    /// Only of this tenant.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    tenant: Option<String>,
    /// Only of this type.
    #[arg(long, value_parser = NonEmptyStringValueParser::new(), conflicts_with = "event")]
    r#type: Option<String>,
    /// Only from this time on: 30m, 2h or 7d ago, or RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = values::moment, conflicts_with = "event")]
    since: Option<Timestamp>,
    /// Only before this time.
    #[arg(long, value_name = "TIME", value_parser = values::moment, conflicts_with = "event")]
    until: Option<Timestamp>,
    /// Every event that there is.
    #[arg(long, conflicts_with_all = ["event", "tenant", "type", "since", "until"])]
    all: bool,
    #[command(flatten)]
    pace: Pace,
}

impl Replay {
    /// Replays one event, or all that match.
    pub fn run(mut self, globals: &Globals) -> Result<(), Failure> {
        let (filter, topics) = match self.event.take() {
            Some(event) => self.one(event, globals)?,
            None => (self.filter()?, self.named_topics()?),
        };
        let rate_per_second = self.pace.rate;
        let topics = Some(topics);
        let wanted = ReplayOfMany { of: Of::Events, filter, topics, all: self.all, rate_per_second };
        Many { wanted, pace: self.pace }.run(globals)
    }

    /// One event is looked up first: the moment at which it was recorded makes finding it again cheap.
    fn one(&mut self, event: String, globals: &Globals) -> Result<(FilterInput, Vec<String>), Failure> {
        let api = Session::open(globals)?.api;
        let tenant = match self.tenant.take() {
            Some(tenant) => tenant,
            None => tenant_of(&api, &event)?,
        };
        let found = api.event(&tenant, &event)?.value.event;
        let created_at = Timestamp::parse_rfc3339(&found.created_at)
            .ok_or_else(|| Failure::unexpected("the gateway does not say when the event was recorded"))?;
        let mut topics = std::mem::take(&mut self.topics);
        if topics.is_empty() {
            topics.extend(found.dispatches.into_iter().map(|dispatch| dispatch.topic));
        }
        if topics.is_empty() {
            return Err(Failure::new(Kind::Refused, "the event goes to no topic: name one with --topic"));
        }
        let filter = FilterInput {
            tenant: Some(tenant),
            event: Some(event),
            since: Some(created_at.rfc3339()),
            until: Some(created_at.plus_ms(1).rfc3339()),
            ..FilterInput::default()
        };
        Ok((filter, topics))
    }

    fn filter(&mut self) -> Result<FilterInput, Failure> {
        let filter = FilterInput {
            tenant: self.tenant.take(),
            r#type: self.r#type.take(),
            since: self.since.map(Timestamp::rfc3339),
            until: self.until.map(Timestamp::rfc3339),
            ..FilterInput::default()
        };
        if filter == FilterInput::default() && !self.all {
            return Err(Failure::usage(
                "nothing says what to replay: give the id of an event, or a filter such as --tenant or --since, or --all",
            ));
        }
        let filter = Filter::parse(filter).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(filter.to_input())
    }

    fn named_topics(&mut self) -> Result<Vec<String>, Failure> {
        let topics = std::mem::take(&mut self.topics);
        if topics.is_empty() {
            return Err(Failure::usage("--topic says where the events go: name one or more"));
        }
        Ok(topics)
    }
}
