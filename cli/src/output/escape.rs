//! Text from elsewhere made harmless: whoever can make an event fail can choose what stands in its error and its payload,
//! and must not be able to move the cursor, set a title or reorder what an operator reads.

use std::fmt::Write;

/// Whether a terminal might do something else with it than show it.
pub fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// The text on one line.
pub fn line(text: &str) -> String {
    escaped(text, |_| false)
}

/// The text with its line breaks and tabs.
pub fn lines(text: &str) -> String {
    escaped(text, |character| matches!(character, '\n' | '\t'))
}

/// The text with its line breaks, each line moved in, so that none of them can pass for a line of ours.
pub fn block(text: &str) -> String {
    lines(text).lines().map(|line| format!("  {line}\n")).collect()
}

fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            _ if is_kept(character) || !is_unsafe(character) => shown.push(character),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            _ => push_units(&mut shown, character),
        }
    }
    shown
}

/// Writes a character as JSON does: one `\u` for each of its UTF-16 units.
pub fn push_units(text: &mut String, character: char) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        // Writing to a String cannot fail.
        let _ = write!(text, "\\u{unit:04x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_remains() {
        assert_eq!(line("\u{1b}[2J\u{1b}]0;x\u{7}"), "\\u001b[2J\\u001b]0;x\\u0007");
        assert_eq!(line("\u{9b}31m\u{7f}\r\n\tx"), "\\u009b31m\\u007f\\r\\n\\tx");
        assert_eq!(line("a\u{202e}b\u{2066}c\u{e0041}"), "a\\u202eb\\u2066c\\udb40\\udc41");
    }

    #[test]
    fn ordinary_text_remains() {
        let text = "Zahlung über 3,50 € – 支払い – دفع – 👩‍👧 – é";
        assert_eq!(line(text), text);
    }

    #[test]
    fn a_block_keeps_its_lines_and_moves_them_in() {
        assert_eq!(block("a\nStatus  resolved\r\n\u{1b}c"), "  a\n  Status  resolved\\r\n  \\u001bc\n");
        assert_eq!(block(""), "");
    }
}
