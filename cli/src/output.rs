//! Where results go: standard output, as tables for people or one JSON object per line for programs.

pub mod escape;
pub mod fields;
pub mod json;
pub mod numbers;
pub mod table;
pub mod times;

use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write};

use console::Term;
use serde_json::value::RawValue;

use self::table::Table;
use crate::arguments::Globals;
use crate::failure::Failure;

/// Where results go.
pub struct Output {
    stdout: StdoutLock<'static>,
    is_json: bool,
    width: Option<usize>,
    closed: bool,
}

impl Output {
    /// Tables on a terminal, JSON anywhere else, unless an option says otherwise.
    pub fn new(globals: &Globals) -> Self {
        let on_terminal = io::stdout().is_terminal();
        let is_json = globals.json || (!on_terminal && !globals.table);
        let width = Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
        let width = width.filter(|_| on_terminal);
        Self { stdout: io::stdout().lock(), is_json, width, closed: false }
    }

    /// Whether results are to be JSON.
    pub fn is_json(&self) -> bool {
        self.is_json
    }

    /// Whether whoever read the results has gone, so that making more of them is of no use.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes one JSON document as a line.
    pub fn json(&mut self, document: &RawValue) -> Result<(), Failure> {
        self.text(&format!("{}\n", json::line(document.get())))
    }

    /// Writes a table, as wide as the terminal allows.
    pub fn table(&mut self, table: &Table) -> Result<(), Failure> {
        self.text(&table.render(self.width))
    }

    /// Writes text that is safe to show.
    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.bytes(text.as_bytes())
    }

    /// Writes bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.closed {
            return Ok(());
        }
        match self.stdout.write_all(bytes).and_then(|()| self.stdout.flush()) {
            Ok(()) => Ok(()),
            // The reader has what it wanted, as `head` does.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            Err(error) => Err(Failure::unexpected(format!("could not write the result: {error}"))),
        }
    }
}
