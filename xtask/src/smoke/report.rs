//! The table of the smoke run: what was done, what came of it, and whether that is what was promised.

use std::fmt;

use crate::http::Answer;
use crate::smoke::cases::{Case, STATUS};
use crate::smoke::outcome::Outcome;
use crate::table::Table;

/// Rows so far.
pub struct Report {
    table: Table<6>,
    rows: usize,
    broken: usize,
}

impl Report {
    /// Nothing yet.
    pub fn new() -> Self {
        let table = Table::new(["event", "HTTP", "answer", "topics: handled", "ended", "as promised"]);
        Self { table, rows: 0, broken: 0 }
    }

    /// An event that was sent.
    pub fn event(&mut self, case: &Case, answer: &Answer, outcome: &Outcome, problems: &[String]) {
        let said = answer.json();
        let said = [STATUS, "/error/code"].iter().find_map(|at| said.pointer(at)?.as_str());
        let status = answer.status.to_string();
        self.row(case.name, &status, said.unwrap_or_default(), outcome, problems);
    }

    /// Something that was done about an event, and what was said to it.
    pub fn step(&mut self, name: &str, said: &str, outcome: &Outcome, problems: &[String]) {
        self.row(name, "", said, outcome, problems);
    }

    fn row(&mut self, name: &str, status: &str, said: &str, outcome: &Outcome, problems: &[String]) {
        self.rows += 1;
        self.broken += usize::from(!problems.is_empty());
        let verdict =
            if problems.is_empty() { "yes".to_owned() } else { format!("NO: {}", problems.join("; ")) };
        let handled = outcome.handled();
        self.table.row([name, status, said, &handled, outcome.status(), &verdict].map(str::to_owned));
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many are not as promised.
    pub fn broken(&self) -> usize {
        self.broken
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(f)
    }
}
