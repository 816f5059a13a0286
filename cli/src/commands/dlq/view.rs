//! `swarm dlq view`: one incident with everything that is known of it.

use clap::Args;
use console::Style;
use swarm_domain::time::Timestamp;

use super::show::style_of;
use crate::api::Details;
use crate::arguments::{Globals, values};
use crate::failure::{Failure, Kind};
use crate::output::fields::Fields;
use crate::output::numbers::{count, thousands};
use crate::output::table::{Cell, Column, Table};
use crate::output::{escape, json, times};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  swarm dlq view inc_0123456789abcdef0123456789abcdef
  swarm dlq view inc_0123456789abcdef0123456789abcdef --pretty
  swarm dlq view inc_0123456789abcdef0123456789abcdef --raw > payload.json";

/// Which incident, and how its payload is shown.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct View {
    /// Id of the incident.
    #[arg(value_name = "INCIDENT_ID", value_parser = values::id)]
    incident: String,
    /// Spread the payload over lines; its values stay as they are.
    #[arg(long, conflicts_with_all = ["json", "raw"])]
    pretty: bool,
    /// Write the payload alone, byte for byte, for a file or another program.
    #[arg(long, conflicts_with_all = ["json", "table"])]
    raw: bool,
}

impl View {
    /// Shows the incident.
    pub fn run(self, globals: &Globals) -> Result<(), Failure> {
        let mut session = Session::open(globals)?;
        let details = session.api.incident(&self.incident)?;
        if self.raw {
            return session.out.bytes(payload(&details.value)?.as_bytes());
        }
        if session.out.is_json() && !self.pretty {
            return session.out.json(&details.json);
        }
        let text = render(&details.value, self.pretty, session.now);
        session.out.text(&text)
    }
}

fn payload(details: &Details) -> Result<&str, Failure> {
    details.payload.as_deref().ok_or_else(|| {
        Failure::new(
            Kind::NotFound,
            match &details.payload_ref {
                Some(key) => format!(
                    "the payload is too large for the API's answer: the bucket of payloads has it as {key}"
                ),
                None => "the incident has no payload".to_owned(),
            },
        )
    })
}

fn render(details: &Details, pretty: bool, now: Timestamp) -> String {
    let mut text = fields(details, now).render();
    if let Some(stack) = &details.error_stack {
        text.push_str(&section("stack", &escape::block(stack)));
    }
    if let Some(payload) = &details.payload {
        let bytes = count(u64::try_from(payload.len()).unwrap_or(u64::MAX), "byte", "bytes");
        let spread = if pretty { json::pretty(payload) } else { None };
        let shown = escape::block(spread.as_deref().unwrap_or(payload));
        text.push_str(&section(&format!("payload, {bytes}"), &shown));
    }
    if !details.log.is_empty() {
        text.push_str(&section("log", &log(details).render(None)));
    }
    text
}

fn fields(details: &Details, now: Timestamp) -> Fields {
    let incident = &details.incident;
    let time = |text: &String| times::with_age(text, now);
    let mut fields = Fields::new();
    fields.add("incident", &incident.incident_id);
    fields.styled("status", &incident.status, style_of(&incident.status));
    fields.add("error", &incident.error_message);
    fields.add_some("tenant", Some(&incident.tenant_id));
    fields.add_some("event", Some(&incident.event_id));
    fields.add_some("type", incident.r#type.as_deref());
    fields.add_some("topic", Some(&incident.topic));
    fields.add("kind", kind_in_words(&incident.kind));
    fields.add_some("queue", Some(&incident.source_queue));
    fields.add("retries", &thousands(incident.retry_count));
    fields.add("created", &time(&incident.created_at));
    fields.add("updated", &time(&incident.updated_at));
    fields.add_some("replayed", incident.replayed_at.as_ref().map(time).as_deref());
    fields.add_some("closed", incident.resolved_at.as_ref().map(time).as_deref());
    fields.add_some("closed by", incident.resolved_by.as_deref());
    fields.add_some(
        "payload",
        details.payload_ref.as_ref().map(|key| format!("in the bucket of payloads: {key}")).as_deref(),
    );
    fields
}

fn kind_in_words(kind: &str) -> &str {
    match kind {
        "dead_letter" => "dead letter: its consumer gave up",
        "abandoned" => "abandoned: its queue never took it",
        "foreign" => "foreign: not a message of this gateway",
        other => other,
    }
}

fn log(details: &Details) -> Table {
    let mut table = Table::new(["at", "who", "did", "note"].map(Column::new).into());
    for entry in &details.log {
        let note = entry.note.as_deref().unwrap_or_default();
        table.row([&*entry.at, &entry.actor, &entry.action, note].map(Cell::new).into());
    }
    table
}

fn section(heading: &str, content: &str) -> String {
    format!("\n{}\n{content}", Style::new().bold().apply_to(heading))
}
