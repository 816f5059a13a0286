//! Which event is meant: by its id, and by its tenant where several tenants have one of that id.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use swarm_domain::events::EventFilterInput;

use crate::api::Api;
use crate::arguments::values;
use crate::failure::{Failure, Kind};

/// More tenants than anybody wants to read.
const TENANTS_SHOWN: usize = 10;

/// An event.
#[derive(Args)]
pub struct Name {
    /// Id of the event.
    #[arg(value_name = "EVENT_ID", value_parser = values::event_id)]
    pub event: String,
    /// Its tenant; needed only if several have an event of this id.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    pub tenant: Option<String>,
}

impl Name {
    /// The tenant and the id of the event.
    pub fn find(self, api: &Api) -> Result<(String, String), Failure> {
        match self.tenant {
            Some(tenant) => Ok((tenant, self.event)),
            None => Ok((tenant_of(api, &self.event)?, self.event)),
        }
    }
}

/// The tenant of an event.
pub fn tenant_of(api: &Api, event: &str) -> Result<String, Failure> {
    let filter = EventFilterInput { id: Some(event.to_owned()), ..EventFilterInput::default() };
    let found = api.events(&filter, TENANTS_SHOWN, None)?.entries;
    let mut tenants: Vec<String> = found.into_iter().map(|event| event.value.tenant_id).collect();
    match (tenants.pop(), tenants.is_empty()) {
        (Some(tenant), true) => Ok(tenant),
        (None, _) => Err(Failure::new(Kind::NotFound, format!("no event has the id {event}"))),
        (Some(last), false) => {
            tenants.push(last);
            let tenants = tenants.join(", ");
            Err(Failure::usage(format!(
                "several tenants have an event {event}: add --tenant, one of {tenants}"
            )))
        }
    }
}
