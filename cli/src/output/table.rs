//! Tables in plain text: columns as wide as their widest cell, and on a terminal no wider than it, as far as that goes.

use console::{Style, truncate_str};
use unicode_width::UnicodeWidthStr;

use super::escape;

const GAP: &str = "  ";

/// A table.
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// A column: its heading and what may become of it where there is little room.
pub struct Column {
    heading: &'static str,
    width_min: Option<usize>,
    is_optional: bool,
}

/// What stands in one place of a table.
pub struct Cell {
    text: String,
    style: Style,
}

impl Column {
    /// A column that is always shown in full.
    pub const fn new(heading: &'static str) -> Self {
        Self { heading, width_min: None, is_optional: false }
    }

    /// The same, but its texts may be cut down to this width.
    pub const fn shrinks_to(mut self, width_min: usize) -> Self {
        self.width_min = Some(width_min);
        self
    }

    /// The same, but it may be left out.
    pub const fn optional(mut self) -> Self {
        self.is_optional = true;
        self
    }
}

impl Cell {
    /// A cell of any text, which becomes one harmless line.
    pub fn new(text: &str) -> Self {
        Self { text: escape::line(text), style: Style::new() }
    }

    /// The same in a style.
    pub fn styled(mut self, style: Style) -> Self {
        self.style = style;
        self
    }
}

impl Table {
    /// A table without rows.
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The table as text, within `limit` columns of the terminal if there is one.
    pub fn render(&self, limit: Option<usize>) -> String {
        let mut shown: Vec<Shown> =
            self.columns.iter().enumerate().map(|(at, column)| self.shown(at, column)).collect();
        if let Some(limit) = limit {
            fit(&mut shown, limit);
        }
        let mut text = String::new();
        push_row(&mut text, &shown, |column| (column.heading, Style::new().bold()));
        let lines: Vec<String> = shown.iter().map(|column| "-".repeat(column.width)).collect();
        text.push_str(&Style::new().dim().apply_to(lines.join(GAP)).to_string());
        text.push('\n');
        for row in &self.rows {
            push_row(&mut text, &shown, |column| {
                row.get(column.at).map_or(("", Style::new()), |cell| (&cell.text, cell.style.clone()))
            });
        }
        text
    }

    fn shown(&self, at: usize, column: &Column) -> Shown {
        let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.text.width());
        let width = cells.max().unwrap_or(0).max(column.heading.width());
        let width_min = column.width_min.unwrap_or(width).clamp(column.heading.width().min(width), width);
        Shown { at, heading: column.heading, width, width_min, is_optional: column.is_optional }
    }
}

/// A column as it is about to be shown.
struct Shown {
    at: usize,
    heading: &'static str,
    width: usize,
    width_min: usize,
    is_optional: bool,
}

/// Leaves columns out, then cuts the widest ones, until the table fits or nothing more can be done.
fn fit(columns: &mut Vec<Shown>, limit: usize) {
    let gaps = |columns: &[Shown]| GAP.len() * columns.len().saturating_sub(1);
    while columns.iter().map(|column| column.width_min).sum::<usize>() + gaps(columns) > limit {
        let Some(last) = columns.iter().rposition(|column| column.is_optional) else {
            break;
        };
        columns.remove(last);
    }
    while columns.iter().map(|column| column.width).sum::<usize>() + gaps(columns) > limit {
        let cuttable = columns.iter_mut().filter(|column| column.width > column.width_min);
        let Some(widest) = cuttable.max_by_key(|column| column.width) else {
            break;
        };
        widest.width -= 1;
    }
}

fn push_row<'a>(text: &mut String, columns: &[Shown], cell: impl Fn(&Shown) -> (&'a str, Style)) {
    let mut padding = 0;
    for column in columns {
        let (content, style) = cell(column);
        let content = truncate_str(content, column.width, "…");
        // Spaces are written only before something, so that no line ends in them.
        if !content.is_empty() {
            text.push_str(&" ".repeat(padding));
            text.push_str(&style.apply_to(&content).to_string());
            padding = 0;
        }
        padding += column.width - content.width().min(column.width) + GAP.len();
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        // The tests may be run from a terminal.
        console::set_colors_enabled(false);
        let columns = vec![
            Column::new("id"),
            Column::new("type").shrinks_to(5).optional(),
            Column::new("error").shrinks_to(6),
        ];
        let mut table = Table::new(columns);
        table.row(vec![
            Cell::new("inc_1"),
            Cell::new("invoice.paid"),
            Cell::new("the bank said no\n\u{1b}[2J"),
        ]);
        table.row(vec![Cell::new("inc_22"), Cell::new(""), Cell::new("支払い")]);
        table
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let expected = "\
id      type          error
------  ------------  ---------------------------
inc_1   invoice.paid  the bank said no\\n\\u001b[2J
inc_22                支払い
";
        assert_eq!(table().render(None), expected);
    }

    #[test]
    fn a_narrow_terminal_cuts_the_widest_first() {
        let expected = "\
id      type          error
------  ------------  ------------
inc_1   invoice.paid  the bank sa…
inc_22                支払い
";
        assert_eq!(table().render(Some(34)), expected);
    }

    #[test]
    fn a_very_narrow_one_leaves_columns_out() {
        assert_eq!(
            table().render(Some(20)),
            "id      error\n------  ------------\ninc_1   the bank sa…\ninc_22  支払い\n"
        );
        assert_eq!(
            table().render(Some(1)),
            "id      error\n------  ------\ninc_1   the b…\ninc_22  支払い\n"
        );
    }
}
