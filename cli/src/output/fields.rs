//! One thing with its fields, a line each.

use console::{Style, StyledObject};

use super::escape;

/// Fields in the order in which they are shown.
#[derive(Default)]
pub struct Fields {
    lines: Vec<(&'static str, StyledObject<String>)>,
}

impl Fields {
    /// No fields yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field of any text, which becomes one harmless line.
    pub fn add(&mut self, name: &'static str, text: &str) {
        self.styled(name, text, Style::new());
    }

    /// The same in a style.
    pub fn styled(&mut self, name: &'static str, text: &str, style: Style) {
        self.lines.push((name, style.apply_to(escape::line(text))));
    }

    /// Adds a field if there is something to show.
    pub fn add_some(&mut self, name: &'static str, text: Option<&str>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.add(name, text);
        }
    }

    /// The fields as text.
    pub fn render(&self) -> String {
        let width = self.lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let label = Style::new().dim();
        let lines = self
            .lines
            .iter()
            .map(|(name, value)| format!("{}  {value}\n", label.apply_to(format!("{name:width$}"))));
        lines.collect()
    }
}
