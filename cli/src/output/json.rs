//! JSON as text: one document on one line, or spread over several without changing a single value. Numbers keep their
//! digits and keys their order, because nothing is read into values and written again.

use serde_json::value::RawValue;

use super::escape;

/// Deeper levels are not moved in further, or a few KB of brackets would become gigabytes of spaces.
const INDENT_LEVELS_MAX: usize = 40;

/// The document on one line, with what a terminal might obey written as `\u`.
///
/// Line breaks stand only between values there, and everything unsafe only inside of strings: the grammar forbids the rest.
pub fn line(document: &str) -> String {
    let mut line = String::with_capacity(document.len());
    for character in document.chars() {
        match character {
            '\n' | '\r' => {}
            '\t' => line.push(' '),
            _ if escape::is_unsafe(character) => escape::push_units(&mut line, character),
            _ => line.push(character),
        }
    }
    line
}

/// The document spread over lines, or nothing if it is not JSON.
pub fn pretty(document: &str) -> Option<String> {
    serde_json::from_str::<&RawValue>(document).ok()?;
    let mut pretty = String::with_capacity(document.len().saturating_mul(2));
    let mut level = 0_usize;
    let mut in_string = false;
    let mut characters = document.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if in_string => {
                pretty.push(character);
                pretty.extend(characters.next());
            }
            '"' => {
                in_string = !in_string;
                pretty.push(character);
            }
            _ if in_string => pretty.push(character),
            ' ' | '\n' | '\r' | '\t' => {}
            '{' | '[' => {
                pretty.push(character);
                while characters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                if let Some(end) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    pretty.push(end);
                } else {
                    level = level.saturating_add(1);
                    break_line(&mut pretty, level);
                }
            }
            '}' | ']' => {
                level = level.saturating_sub(1);
                break_line(&mut pretty, level);
                pretty.push(character);
            }
            ',' => {
                pretty.push(character);
                break_line(&mut pretty, level);
            }
            ':' => pretty.push_str(": "),
            _ => pretty.push(character),
        }
    }
    Some(pretty)
}

fn break_line(text: &mut String, level: usize) {
    text.push('\n');
    text.push_str(&"  ".repeat(level.min(INDENT_LEVELS_MAX)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_and_the_same_document() {
        let document = "{\n\t\"a\": \"x\u{9b}y\u{202e}\u{7f}\",\r\n \"b\": [1.0]\n}";
        let line = line(document);
        assert_eq!(line, "{ \"a\": \"x\\u009by\\u202e\\u007f\", \"b\": [1.0]}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&line), read(document));
    }

    #[test]
    fn pretty_keeps_digits_order_and_escapes() {
        let document =
            r#"{"z":1.0,"a":12345678901234567890,"s":"a,\"{b\\","e":{},"l":[ ],"n":[1,{"x":null}]}"#;
        let expected = r#"{
  "z": 1.0,
  "a": 12345678901234567890,
  "s": "a,\"{b\\",
  "e": {},
  "l": [],
  "n": [
    1,
    {
      "x": null
    }
  ]
}"#;
        assert_eq!(pretty(document).unwrap(), expected);
    }

    #[test]
    fn pretty_is_for_json() {
        assert_eq!(pretty("hello"), None);
        assert_eq!(pretty(""), None);
        assert_eq!(pretty("{} {}"), None);
        assert_eq!(pretty("\"{\""), Some("\"{\"".to_owned()));
    }

    #[test]
    fn deep_nesting_stays_small() {
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert!(pretty(&deep).unwrap().len() < 100 * 200);
    }
}
