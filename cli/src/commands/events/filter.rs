//! Options that say which events are meant. All that are given must hold.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use swarm_domain::events::{EventFilter, EventFilterInput};
use swarm_domain::time::Timestamp;

use crate::arguments::values;
use crate::failure::Failure;

/// Which events are meant, apart from their topics and the end of the time.
#[derive(Args)]
pub struct EventFilterArguments {
    /// Only of this tenant.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub tenant: Option<String>,
    /// Only of this type, such as billing.invoice.paid.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub r#type: Option<String>,
    /// Only from this time on: 30m, 2h or 7d ago, or RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = values::moment)]
    pub since: Option<Timestamp>,
}

impl EventFilterArguments {
    /// The filter with what else it says, checked by the rules that the gateway has for it.
    pub fn checked(self, more: EventFilterInput) -> Result<EventFilterInput, Failure> {
        let since = self.since.map(Timestamp::rfc3339);
        let input = EventFilterInput { tenant: self.tenant, r#type: self.r#type, since, ..more };
        EventFilter::parse(input.clone()).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(input)
    }
}
