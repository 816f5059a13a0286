//! Turns the output of wrangler dev into lines for people: our Workers' JSON as time, Worker, message and fields; all
//! else as it came, but dimmed.

use serde_json::{Map, Value};
use time::OffsetDateTime;

const DIM: &str = "2";
const BOLD: &str = "1";
const RED: &str = "31";
const YELLOW: &str = "33";

/// How lines are written.
pub struct LogStyle {
    /// Whether to use colours.
    pub colours: bool,
}

impl LogStyle {
    /// Colours on a terminal only, and never against the user's wish.
    pub fn detect() -> Self {
        let on_terminal = std::io::IsTerminal::is_terminal(&std::io::stdout());
        Self { colours: on_terminal && std::env::var_os("NO_COLOR").is_none() }
    }

    /// One line of wrangler's output, or nothing where there is nothing to tell.
    pub fn line(&self, raw: &str, now: OffsetDateTime) -> Option<String> {
        let line = without_escapes(raw);
        if line.trim().is_empty() {
            return None;
        }
        Some(our_fields(&line).map_or_else(|| self.paint(DIM, &line), |fields| self.record(&fields, now)))
    }

    /// A text in a colour, where colours are wanted.
    pub fn paint(&self, code: &str, text: &str) -> String {
        if self.colours { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn record(&self, fields: &Map<String, Value>, now: OffsetDateTime) -> String {
        let time = format!("{:02}:{:02}:{:02}", now.hour(), now.minute(), now.second());
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let message = match text("level") {
            "error" => self.paint(RED, text("message")),
            "warn" => self.paint(YELLOW, text("message")),
            _ => text("message").to_owned(),
        };
        let mut line = format!("{} {}  {message}", self.paint(DIM, &time), self.paint(BOLD, text("worker")));
        for (name, value) in fields {
            if !["worker", "level", "message"].contains(&name.as_str()) {
                let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                line.push(' ');
                line.push_str(&self.paint(DIM, &format!("{name}={shown}")));
            }
        }
        line
    }
}

/// The fields of a line that a Worker of ours wrote. Wrangler puts the Worker's name or a mark before the text, so it is
/// looked for between the outermost braces.
fn our_fields(line: &str) -> Option<Map<String, Value>> {
    let text = line.get(line.find('{')?..=line.rfind('}')?)?;
    let Ok(Value::Object(fields)) = serde_json::from_str(text) else {
        return None;
    };
    (fields.contains_key("worker") && fields.contains_key("message")).then_some(fields)
}

/// The line without terminal escapes such as `ESC [ 31 m`.
fn without_escapes(line: &str) -> String {
    let mut clean = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        clean.push_str(before);
        rest = after.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, tail)| tail);
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn our_lines_are_laid_out_and_others_left() {
        let style = LogStyle { colours: false };
        let cases = [
            (
                r#"[swarm-core] {"worker":"swarm-core","level":"info","message":"event accepted","eventId":"evt_1","ms":4}"#,
                Some("03:25:07 swarm-core  event accepted eventId=evt_1 ms=4"),
            ),
            (
                "\u{1b}[31m✘ [ERROR]\u{1b}[0m {\"worker\":\"w\",\"level\":\"error\",\"message\":\"no\"}",
                Some("03:25:07 w  no"),
            ),
            (r#"[wrangler:info] {"a":1}"#, Some(r#"[wrangler:info] {"a":1}"#)),
            ("\u{1b}[2m\u{1b}[0m ", None),
        ];
        for (raw, shown) in cases {
            assert_eq!(style.line(raw, datetime!(2026-12-01 03:25:07 UTC)).as_deref(), shown);
        }
    }
}
