//! Options that say which incidents are meant. All that are given must hold.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use swarm_domain::incident::{Filter, FilterInput};
use swarm_domain::time::Timestamp;

use super::values::{event_id, moment};
use crate::failure::Failure;

/// Which incidents are meant, apart from their states.
#[derive(Args)]
pub struct FilterArguments {
    /// Only of this tenant.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    tenant: Option<String>,
    /// Only of this topic, such as billing.events.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    topic: Option<String>,
    /// Only of the event that has this id.
    #[arg(long, value_name = "EVENT_ID", value_parser = event_id)]
    event: Option<String>,
    /// Only of events of this type, such as billing.invoice.paid.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    r#type: Option<String>,
    /// Only if the error has this text in it, in capitals or not.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    error: Option<String>,
    /// Only from this time on: 30m, 2h or 7d ago, or RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Timestamp>,
    /// Only before this time.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<Timestamp>,
}

impl FilterArguments {
    /// The filter with these states; none given means any. It is checked by the rules that the gateway has for it.
    pub fn with_states(self, states: Vec<String>) -> Result<FilterInput, Failure> {
        let input = FilterInput {
            tenant: self.tenant,
            topic: self.topic,
            event: self.event,
            r#type: self.r#type,
            error: self.error,
            since: self.since.map(Timestamp::rfc3339),
            until: self.until.map(Timestamp::rfc3339),
            status: (!states.is_empty()).then_some(states),
        };
        let filter = Filter::parse(input).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(filter.to_input())
    }
}

/// A filter in words.
pub fn in_words(filter: &FilterInput) -> String {
    let status = filter.status.as_ref().map(|states| states.join(" or "));
    let fields = [
        ("", &status),
        ("tenant ", &filter.tenant),
        ("topic ", &filter.topic),
        ("event ", &filter.event),
        ("type ", &filter.r#type),
        ("error ", &filter.error),
        ("since ", &filter.since),
        ("until ", &filter.until),
    ];
    let words = fields.into_iter().filter_map(|(name, value)| Some(format!("{name}{}", value.as_ref()?)));
    let words = words.collect::<Vec<_>>().join(", ");
    if words.is_empty() { "all".to_owned() } else { words }
}
