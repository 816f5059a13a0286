//! `swarm events view`: one event with its payload and every attempt to deliver it.

use clap::Args;
use console::Style;
use swarm_domain::time::Timestamp;

use super::find::Name;
use super::show::style_of;
use crate::api::{Dispatch, EventDetails};
use crate::arguments::Globals;
use crate::failure::Failure;
use crate::output::fields::Fields;
use crate::output::numbers::count;
use crate::output::table::{Cell, Column, Table};
use crate::output::{escape, json, times};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  swarm events view evt_1
  swarm events view evt_1 --tenant acme --pretty";

/// Which event, and how its payload is shown.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct View {
    #[command(flatten)]
    name: Name,
    /// Spread the payload over lines; its values stay as they are.
    #[arg(long, conflicts_with = "json")]
    pretty: bool,
}

impl View {
    /// Shows the event.
    pub fn run(self, globals: &Globals) -> Result<(), Failure> {
        let mut session = Session::open(globals)?;
        let (tenant, id) = self.name.find(&session.api)?;
        let details = session.api.event(&tenant, &id)?;
        if session.out.is_json() && !self.pretty {
            return session.out.json(&details.json);
        }
        let text = render(&details.value, self.pretty, session.now);
        session.out.text(&text)
    }
}

fn render(details: &EventDetails, pretty: bool, now: Timestamp) -> String {
    let mut text = fields(details, now).render();
    for dispatch in &details.event.dispatches {
        text.push_str(&section(&heading(dispatch), &timeline(dispatch).render(None)));
    }
    match (&details.payload, &details.payload_ref) {
        (Some(payload), _) => {
            let bytes = count(u64::try_from(payload.len()).unwrap_or(u64::MAX), "byte", "bytes");
            let spread = if pretty { json::pretty(payload) } else { None };
            let shown = escape::block(spread.as_deref().unwrap_or(payload));
            text.push_str(&section(&format!("payload, {bytes}"), &shown));
        }
        (None, Some(_)) => {
            text.push_str(&section("payload", "  too large to be shown here: `swarm events raw` has it\n"));
        }
        (None, None) => {}
    }
    text
}

fn fields(details: &EventDetails, now: Timestamp) -> Fields {
    let (event, context) = (&details.event, &details.context);
    let mut fields = Fields::new();
    fields.add("event", &event.event_id);
    fields.styled("status", &event.status, style_of(&event.status));
    fields.add("tenant", &event.tenant_id);
    fields.add("type", &event.r#type);
    fields.add_some("source", event.source.as_deref());
    fields.add_some("subject", event.subject.as_deref());
    fields.add("occurred", &times::with_age(&event.occurred_at, now));
    fields.add("recorded", &times::with_age(&event.created_at, now));
    fields.add_some("version", context.version.as_deref());
    fields.add_some("correlation", context.correlation_id.as_deref());
    fields.add_some("causation", context.causation_id.as_deref());
    fields.add_some("actor", context.actor.as_deref());
    fields.add_some("traceparent", context.traceparent.as_deref());
    fields
}

fn heading(dispatch: &Dispatch) -> String {
    let incident = dispatch.incident_id.as_ref().map(|id| format!(", incident {id}")).unwrap_or_default();
    let again =
        dispatch.next_retry_at.as_ref().map(|at| format!(", looked at again {at}")).unwrap_or_default();
    escape::line(&format!("{}: {}{incident}{again}", dispatch.topic, dispatch.status))
}

fn timeline(dispatch: &Dispatch) -> Table {
    let mut table = Table::new(["at", "what", "more"].map(Column::new).into());
    for happening in &dispatch.timeline {
        let by = happening.by.as_ref().map(|by| format!("by {by}"));
        let more = happening.error.clone().or(by).unwrap_or_default();
        let what = happening.what.replace('_', " ");
        table.row([&*happening.at, &what, &more].map(Cell::new).into());
    }
    table
}

fn section(heading: &str, content: &str) -> String {
    format!("\n{}\n{content}", Style::new().bold().apply_to(heading))
}
