//! `swarm tail`: events as they arrive, a line each.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use swarm_domain::events::EventFilterInput;

use crate::api::Event;
use crate::arguments::Globals;
use crate::commands::events::{EventFilterArguments, style_of, topics};
use crate::failure::Failure;
use crate::following::Following;
use crate::notes;
use crate::output::escape;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  swarm tail
  swarm tail --tenant acme --topic billing.events
  swarm tail --since 10m --json | jq -r .eventId

It shows every event once, in the order in which its shard has recorded it, and goes on where it was after a loss of the
network. Ctrl-C ends it and says how to go on from there.";

/// Which events.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Tail {
    #[command(flatten)]
    filter: EventFilterArguments,
    /// Only those that go to this topic.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    topic: Option<String>,
    /// Begin where an earlier run ended.
    #[arg(long, conflicts_with = "since")]
    cursor: Option<String>,
}

impl Tail {
    /// Shows events until somebody stops it, or nobody reads any more.
    pub fn run(self, globals: &Globals) -> Result<(), Failure> {
        let more = EventFilterInput { topic: self.topic, ..EventFilterInput::default() };
        let filter = self.filter.checked(more)?;
        let mut session = Session::open(globals)?;
        let mut following = Following::begin(filter, self.cursor)?;
        notes::note("waiting for events; Ctrl-C ends it");
        while !session.out.is_closed() {
            for event in following.next(&session.api)? {
                if session.out.is_json() {
                    session.out.json(&event.json)?;
                } else {
                    session.out.text(&line(&event.value))?;
                }
            }
        }
        Ok(())
    }
}

fn line(event: &Event) -> String {
    let text = format!("{}  {}  {}  ", event.created_at, event.tenant_id, event.r#type);
    let status = style_of(&event.status).apply_to(escape::line(&event.status));
    let rest = format!("  {}  {}", event.event_id, topics(&event.dispatches));
    format!("{}{status}{}\n", escape::line(&text), escape::line(&rest))
}
