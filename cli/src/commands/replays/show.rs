//! How replays look in tables.

use std::slice;

use console::Style;
use swarm_domain::incident::FilterInput;

use crate::api::{Record, Replay};
use crate::arguments::filter::in_words;
use crate::failure::Failure;
use crate::output::numbers::thousands;
use crate::output::table::{Cell, Column, Table};
use crate::output::times;
use crate::session::Session;

/// Shows one replay.
pub fn show_one(session: &mut Session, replay: &Record<Replay>) -> Result<(), Failure> {
    show(session, slice::from_ref(replay))
}

/// Shows replays, each as a line.
pub fn show(session: &mut Session, replays: &[Record<Replay>]) -> Result<(), Failure> {
    if session.out.is_json() {
        return replays.iter().try_for_each(|replay| session.out.json(&replay.json));
    }
    let mut table = Table::new(vec![
        Column::new("replay"),
        Column::new("status"),
        Column::new("sent"),
        Column::new("skipped"),
        Column::new("total"),
        Column::new("a second").optional(),
        Column::new("age"),
        Column::new("by").shrinks_to(6),
        Column::new("of").shrinks_to(16),
    ]);
    for Record { value: replay, .. } in replays {
        table.row(vec![
            Cell::new(&replay.replay_id),
            Cell::new(&replay.status).styled(style_of(replay)),
            Cell::new(&thousands(replay.moved)),
            Cell::new(&thousands(replay.skipped)),
            Cell::new(&thousands(replay.total)),
            Cell::new(&thousands(replay.rate_per_second)),
            Cell::new(&times::age(&replay.created_at, session.now)),
            Cell::new(&replay.created_by),
            Cell::new(&what(replay)),
        ]);
    }
    session.out.table(&table)
}

fn style_of(replay: &Replay) -> Style {
    match replay.status.as_str() {
        "running" => Style::new().cyan(),
        "completed" => Style::new().green(),
        _ => Style::new().dim(),
    }
}

/// What it replays, in words; as JSON if a newer gateway knows filters that are unknown here.
fn what(replay: &Replay) -> String {
    let filter = serde_json::from_str::<FilterInput>(replay.filter.get());
    let filter = filter.map_or_else(|_| replay.filter.get().to_owned(), |filter| in_words(&filter));
    match &replay.topics {
        Some(topics) => format!("{}: {filter}, to {}", replay.of, topics.join(", ")),
        None => format!("{}: {filter}", replay.of),
    }
}
