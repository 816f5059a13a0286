//! How events look in tables.

use console::Style;
use swarm_domain::time::Timestamp;

use crate::api::{Dispatch, Event, Record};
use crate::output::table::{Cell, Column, Table};
use crate::output::times;

/// A table of events.
pub fn table(events: &[Record<Event>], now: Timestamp) -> Table {
    let mut table = Table::new(vec![
        Column::new("event").shrinks_to(12),
        Column::new("status"),
        Column::new("age"),
        Column::new("tenant").shrinks_to(6),
        Column::new("type").shrinks_to(12),
        Column::new("topics").shrinks_to(12).optional(),
    ]);
    for Record { value: event, .. } in events {
        table.row(vec![
            Cell::new(&event.event_id),
            Cell::new(&event.status).styled(style_of(&event.status)),
            Cell::new(&times::age(&event.created_at, now)),
            Cell::new(&event.tenant_id),
            Cell::new(&event.r#type),
            Cell::new(&topics(&event.dispatches)),
        ]);
    }
    table
}

/// Topics, and of those that have not got the event how they stand.
pub fn topics(dispatches: &[Dispatch]) -> String {
    let shown = dispatches.iter().map(|dispatch| match dispatch.status.as_str() {
        "delivered" => dispatch.topic.clone(),
        status => format!("{} ({status})", dispatch.topic),
    });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { "-".to_owned() } else { shown.join(", ") }
}

/// The colour of a state of events, or of dispatches.
pub fn style_of(status: &str) -> Style {
    match status {
        "dlq" | "dead_lettered" | "dlq_abandoned" => Style::new().red(),
        "undelivered" | "failed" => Style::new().yellow(),
        "received" | "processing" | "pending" | "enqueued" => Style::new().cyan(),
        "completed" | "delivered" => Style::new().green(),
        _ => Style::new().dim(),
    }
}
