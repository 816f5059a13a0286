//! How incidents look in tables.

use console::Style;
use swarm_domain::time::Timestamp;

use crate::api::{Incident, Record};
use crate::output::numbers::thousands;
use crate::output::table::{Cell, Column, Table};
use crate::output::times;

/// A table of incidents.
pub fn table(incidents: &[Record<Incident>], now: Timestamp) -> Table {
    let mut table = Table::new(vec![
        Column::new("incident"),
        Column::new("status"),
        Column::new("age"),
        Column::new("tenant").shrinks_to(6),
        Column::new("topic").shrinks_to(8),
        Column::new("type").shrinks_to(8).optional(),
        Column::new("retries").optional(),
        Column::new("error").shrinks_to(16),
    ]);
    for Record { value: incident, .. } in incidents {
        table.row(vec![
            Cell::new(&incident.incident_id),
            Cell::new(&incident.status).styled(style_of(&incident.status)),
            Cell::new(&times::age(&incident.created_at, now)),
            Cell::new(or_dash(&incident.tenant_id)),
            Cell::new(or_dash(&incident.topic)),
            Cell::new(or_dash(incident.r#type.as_deref().unwrap_or_default())),
            Cell::new(&thousands(incident.retry_count)),
            Cell::new(&incident.error_message),
        ]);
    }
    table
}

/// The colour of a state: what needs somebody stands out.
pub fn style_of(status: &str) -> Style {
    match status {
        "open" => Style::new().red(),
        "triaged" => Style::new().yellow(),
        "retrying" => Style::new().cyan(),
        "resolved" => Style::new().green(),
        _ => Style::new().dim(),
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}
