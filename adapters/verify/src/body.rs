//! Reads JSON bodies without rewriting them.
//!
//! The payload of an event is the text that came, so a body is checked and looked into, but never turned into a
//! tree of values and back: numbers keep their digits, keys their order, strings their escapes. Only the few
//! fields that a provider names are decoded.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::{RawValue, Value};

use crate::{
    Rejection,
    event::{checked_unix_ms, is_short_text, unix_ms_from_rfc3339, unix_ms_from_seconds},
    limits::JSON_DEPTH_MAX,
};

/// The body as text, without the JSON white space around it. It still has to be parsed; [`Fields::read`] does.
///
/// A byte order mark is refused: stripe-node 23.1.0 drops it before verifying and so refuses such a body as well,
/// and JSON readers further on would stumble over it (RFC 8259, section 8.1).
///
/// # Errors
/// [`Rejection::Unreadable`] when it is not UTF-8, or nested deeper than [`JSON_DEPTH_MAX`].
pub fn json_text(body: &[u8]) -> Result<&str, Rejection> {
    let text = std::str::from_utf8(body).map_err(|_| Rejection::Unreadable("not UTF-8"))?;
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    if nesting_depth(text) > JSON_DEPTH_MAX {
        return Err(Rejection::Unreadable("nested too deeply"));
    }
    Ok(text)
}

/// How deeply arrays and objects are nested in a text; meaningful only if the text is JSON.
///
/// A scan of its own, because the parser does not count inside the values that it passes over unread.
fn nesting_depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The items of a JSON array, each still as the text that came.
///
/// # Errors
/// [`Rejection::Unreadable`] when the text is not one JSON array.
pub fn items(text: &str) -> Result<Vec<&str>, Rejection> {
    let items: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|_| Rejection::Unreadable("not a JSON array"))?;
    Ok(items.into_iter().map(RawValue::get).collect())
}

/// All fields of a JSON object in order: names decoded, values still as the text that came. For the providers that
/// say with a field's name what is in it; where names are known, [`Fields::read`] is the tool.
///
/// # Errors
/// [`Rejection::Unreadable`] when the text is not one JSON object.
pub fn members(text: &str) -> Result<Vec<(String, &str)>, Rejection> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer
        .deserialize_map(Members)
        .and_then(|members| deserializer.end().map(|()| members))
        .map_err(|_| Rejection::Unreadable("not a JSON object"))
}

/// What a JSON Pointer (RFC 6901) leads to: a text, or the digits of a number. `None` when there is nothing, or something else.
#[must_use]
pub fn text_at(document: &str, pointer: &str) -> Option<String> {
    let mut here = document;
    for token in pointer.strip_prefix('/')?.split('/') {
        let name = token.replace("~1", "/").replace("~0", "~");
        here = match members(here) {
            // Of several fields of one name the last one counts, as for most readers.
            Ok(members) => members.into_iter().rev().find(|(field, _)| *field == name)?.1,
            Err(_) => *items(here).ok()?.get(name.parse::<usize>().ok()?)?,
        };
    }
    match here.as_bytes().first()? {
        b'"' => serde_json::from_str(here).ok(),
        b'-' | b'0'..=b'9' => Some(here.to_owned()),
        _ => None,
    }
}

/// A JSON object with some of its fields replaced, or left out where the replacement is `None`. All others keep their text.
///
/// # Errors
/// [`Rejection::Unreadable`] when the text is not one JSON object.
pub fn with_members(text: &str, replacements: &[(&str, Option<&str>)]) -> Result<String, Rejection> {
    let mut object = String::with_capacity(text.len());
    for (name, value) in members(text)? {
        let replacement = replacements.iter().find(|(replaced, _)| *replaced == name);
        let Some(value) = replacement.map_or(Some(value), |(_, replacement)| *replacement) else { continue };
        object.push(if object.is_empty() { '{' } else { ',' });
        object.push_str(&Value::from(name).to_string());
        object.push(':');
        object.push_str(value);
    }
    object.push_str(if object.is_empty() { "{}" } else { "}" });
    Ok(object)
}

/// Deserializes an object into its fields, in order.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, &'de str)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            members.push((name, value.get()));
        }
        Ok(members)
    }
}

/// Some fields of a JSON object, each still as the text that came; by default, those of an empty object.
#[derive(Debug, Clone, Default)]
pub struct Fields<'a> {
    found: Vec<(&'static str, &'a RawValue)>,
}

impl<'a> Fields<'a> {
    /// Picks the fields `names` out of a JSON object and passes over all others.
    ///
    /// # Errors
    /// [`Rejection::Unreadable`] when the text is not one JSON object, or holds one of `names` twice: readers
    /// differ in which one they take, and an id must not depend on the reader. Other duplicates are let through.
    pub fn read(text: &'a str, names: &'static [&'static str]) -> Result<Self, Rejection> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let found = Pick { names }
            .deserialize(&mut deserializer)
            .and_then(|found| deserializer.end().map(|()| found))
            .map_err(|_| Rejection::Unreadable("not a JSON object, or an important field is there twice"))?;
        Ok(Self { found })
    }

    /// A field's JSON text; `None` when it is absent or `null`.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.found.iter().find(|(field, _)| *field == name)?;
        Some(value.get()).filter(|text| *text != "null")
    }

    /// The items of a field that is an array, each still as the text that came.
    ///
    /// # Errors
    /// [`Rejection::Unreadable`] when it is anything else, also when it is absent.
    pub fn items(&self, name: &str) -> Result<Vec<&'a str>, Rejection> {
        items(self.raw(name).unwrap_or_default())
    }

    /// A field's value; `None` when it is absent or `null`.
    ///
    /// # Errors
    /// [`Rejection::Unreadable`] when it is there but of another type. Where a field is a convenience, the caller
    /// ignores this with [`Fields::lenient`].
    pub fn value<T: Deserialize<'a>>(&self, name: &str) -> Result<Option<T>, Rejection> {
        let Some(text) = self.raw(name) else {
            return Ok(None);
        };
        let value = serde_json::from_str(text);
        value.map(Some).map_err(|_| Rejection::Unreadable("a field is not of its type"))
    }

    /// A field's value; `None` also when it is of another type.
    #[must_use]
    pub fn lenient<T: Deserialize<'a>>(&self, name: &str) -> Option<T> {
        self.value(name).ok().flatten()
    }

    /// The provider's id of an event; `None` when the field is absent or `null`.
    ///
    /// # Errors
    /// [`Rejection::Unreadable`] when it is there in a form that no id has: guessing would make two facts one.
    pub fn id(&self, name: &str) -> Result<Option<String>, Rejection> {
        let id: Option<String> = self.value(name)?;
        if id.as_deref().is_none_or(is_short_text) {
            Ok(id)
        } else {
            Err(Rejection::Unreadable("the id is not a short text"))
        }
    }

    /// A convenience: a text of 1–200 visible ASCII characters; `None` when it is anything else.
    #[must_use]
    pub fn short_text(&self, name: &str) -> Option<String> {
        self.lenient::<String>(name).filter(|text| is_short_text(text))
    }

    /// An id: a text of 1–200 visible ASCII characters, or a whole number, of which the digits are taken as they came.
    /// `None` when it is absent or `null`.
    ///
    /// # Errors
    /// [`Rejection::Unreadable`] when it is anything else.
    pub fn id_or_number(&self, name: &str) -> Result<Option<String>, Rejection> {
        let Some(text) = self.raw(name) else {
            return Ok(None);
        };
        let id = if text.bytes().all(|byte| byte.is_ascii_digit()) {
            Some(text.to_owned())
        } else {
            serde_json::from_str::<String>(text).ok()
        };
        let id = id.filter(|id| is_short_text(id));
        id.map(Some).ok_or(Rejection::Unreadable("an id is neither a short text nor a number"))
    }

    /// The same where it is a convenience: `None` also when it is anything else.
    #[must_use]
    pub fn text_or_number(&self, name: &str) -> Option<String> {
        self.id_or_number(name).ok().flatten()
    }

    /// A time that is a count of milliseconds since 1970, as a number or a text of digits, in milliseconds since
    /// 1970; `None` when it is not one or lies outside of the years 1970 to 9999.
    #[must_use]
    pub fn time_in_ms(&self, name: &str) -> Option<i64> {
        self.text_or_number(name)?.parse().ok().and_then(checked_unix_ms)
    }

    /// A time that is a count of seconds since 1970, in milliseconds since 1970 and under the same conditions.
    #[must_use]
    pub fn time_in_seconds(&self, name: &str) -> Option<i64> {
        self.text_or_number(name)?.parse().ok().and_then(unix_ms_from_seconds)
    }

    /// A time that is a text by RFC 3339, in milliseconds since 1970 and under the same conditions.
    #[must_use]
    pub fn time_in_rfc3339(&self, name: &str) -> Option<i64> {
        unix_ms_from_rfc3339(&self.lenient::<String>(name)?)
    }

    /// Fields of a field that is an object itself; `None` when it is not.
    #[must_use]
    pub fn object(&self, name: &str, names: &'static [&'static str]) -> Option<Self> {
        Self::read(self.raw(name)?, names).ok()
    }
}

/// Deserializes the wanted fields of an object and passes over the others.
struct Pick {
    names: &'static [&'static str],
}

impl<'de> DeserializeSeed<'de> for Pick {
    type Value = Vec<(&'static str, &'de RawValue)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Pick {
    type Value = Vec<(&'static str, &'de RawValue)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut found: Self::Value = Vec::with_capacity(self.names.len());
        while let Some(wanted) = map.next_key_seed(WantedKey { names: self.names })? {
            let Some(name) = wanted else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if found.iter().any(|(earlier, _)| *earlier == name) {
                return Err(M::Error::duplicate_field(name));
            }
            found.push((name, map.next_value()?));
        }
        Ok(found)
    }
}

/// Deserializes a key into the wanted name that it equals, escapes decoded, without keeping the key.
struct WantedKey {
    names: &'static [&'static str],
}

impl<'de> DeserializeSeed<'de> for WantedKey {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for WantedKey {
    type Value = Option<&'static str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.names.iter().copied().find(|name| *name == key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::OCCURRED_AT_UNIX_MS_MAX;

    const NAMES: &[&str] = &["id", "n", "sub"];

    fn nested(depth: usize) -> String {
        format!("{}{}", "[".repeat(depth), "]".repeat(depth))
    }

    #[test]
    fn only_json_white_space_is_trimmed() {
        assert_eq!(json_text(b" \t\r\n{ }\n"), Ok("{ }"));
        assert_eq!(json_text("\u{a0}{}".as_bytes()), Ok("\u{a0}{}"));
        assert_eq!(json_text(b"\xff"), Err(Rejection::Unreadable("not UTF-8")));
    }

    #[test]
    fn depth_is_counted_outside_of_strings() {
        for (text, depth) in [("1", 0), ("{}", 1), (r#"[{"a":[]},[]]"#, 3), (r#"["[[","\"[[","\\",[]]"#, 2)] {
            assert_eq!(nesting_depth(text), depth, "{text}");
        }
        assert!(json_text(nested(JSON_DEPTH_MAX).as_bytes()).is_ok());
        let too_deep = Rejection::Unreadable("nested too deeply");
        assert_eq!(json_text(nested(JSON_DEPTH_MAX + 1).as_bytes()), Err(too_deep));
    }

    #[test]
    fn a_pointer_leads_to_a_text_or_a_number() {
        let document = r#"{"a":{"b/c":[7,"x"],"n":1.0,"o":{},"t":true,"z":null},"a~":"y","d":1,"d":2}"#;
        for (pointer, expected) in [
            ("/a/b~1c/1", Some("x")),
            ("/a/b~1c/0", Some("7")),
            ("/a/n", Some("1.0")),
            ("/a~0", Some("y")),
            ("/d", Some("2")),
            ("/a/o", None),
            ("/a/t", None),
            ("/a/z", None),
            ("/a/b~1c/2", None),
            ("/a/b~1c/x", None),
            ("/none", None),
            ("/d/e", None),
            ("", None),
            ("a", None),
        ] {
            assert_eq!(text_at(document, pointer).as_deref(), expected, "{pointer}");
        }
    }

    #[test]
    fn replaced_fields_leave_the_others_as_they_are() {
        let text = r#"{"a": 1.0, "\u0062":[ ],"c":{"n":1e2},"a":2}"#;
        let replaced = with_members(text, &[("b", Some("[3]")), ("c", None), ("x", Some("1"))]);
        assert_eq!(replaced.as_deref(), Ok(r#"{"a":1.0,"b":[3],"a":2}"#));
        assert_eq!(with_members(r#"{"a":1}"#, &[("a", None)]).as_deref(), Ok("{}"));
        assert!(with_members("[]", &[]).is_err());
    }

    #[test]
    fn fields_keep_their_text() {
        let text = r#"{"x":1,"x":2,"n": 1.0e0 ,"id":"a\u0062","sub":{"id":null,"n":12345678901234567890}}"#;
        let fields = Fields::read(text, NAMES).unwrap();
        assert_eq!(fields.raw("n"), Some("1.0e0"));
        assert_eq!(fields.value::<String>("id"), Ok(Some("ab".to_owned())));
        assert!(fields.value::<i64>("id").is_err());
        assert_eq!(fields.lenient::<i64>("id"), None);
        let sub = fields.object("sub", NAMES).unwrap();
        assert_eq!((sub.raw("id"), sub.raw("n"), sub.raw("sub")), (None, Some("12345678901234567890"), None));
        assert!(fields.object("id", NAMES).is_none());
    }

    #[test]
    fn ids_are_refused_and_conveniences_left_out_in_an_unknown_form() {
        for (text, id) in [(r#"{}"#, None), (r#"{"id":null}"#, None), (r#"{"id":"a"}"#, Some("a"))] {
            let fields = Fields::read(text, NAMES).unwrap();
            assert_eq!(fields.id("id"), Ok(id.map(str::to_owned)), "{text}");
            assert_eq!(fields.short_text("id").as_deref(), id, "{text}");
        }
        for text in [r#"{"id":7}"#, r#"{"id":""}"#, r#"{"id":"a b"}"#, r#"{"id":{}}"#] {
            let fields = Fields::read(text, NAMES).unwrap();
            assert!(fields.id("id").is_err() && fields.short_text("id").is_none(), "{text}");
        }
    }

    #[test]
    fn what_is_not_one_object_is_refused() {
        let texts =
            ["", "null", "[]", "1", "{", "{}{}", "{} x", r#"{"a":}"#, r#"{"a":1,}"#, "{'a':1}", "\u{feff}{}"];
        for text in
            texts.into_iter().chain([r#"{"a":"\x"}"#, "{\"a\":\"\n\"}", r#"{"a":01}"#, r#"{"a":NaN}"#])
        {
            assert!(Fields::read(text, NAMES).is_err(), "{text}");
        }
    }

    #[test]
    fn items_keep_their_text() {
        assert_eq!(items(r#" [ {"n": 1.0} , null,[2] ] "#), Ok(vec![r#"{"n": 1.0}"#, "null", "[2]"]));
        for text in ["", "{}", "[1", "[1,]", "[1] 2"] {
            assert!(items(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_field_may_be_an_array() {
        let items = |text| Fields::read(text, NAMES).unwrap().items("n").ok();
        assert_eq!(items(r#"{"n":[{"a": 1} ,2]}"#), Some(vec![r#"{"a": 1}"#, "2"]));
        assert_eq!(items(r#"{"n":[]}"#), Some(vec![]));
        for text in ["{}", r#"{"n":null}"#, r#"{"n":{}}"#, r#"{"n":"[]"}"#] {
            assert_eq!(items(text), None, "{text}");
        }
        assert_eq!(Fields::default().raw("n"), None);
    }

    #[test]
    fn members_keep_their_order_and_text() {
        let text = r#" {"b":[ 1 ],"\u0061":null,"b":"x"} "#;
        let expected = [("b", "[ 1 ]"), ("a", "null"), ("b", r#""x""#)];
        let found = members(text).unwrap();
        assert!(found.iter().map(|(name, value)| (name.as_str(), *value)).eq(expected), "{found:?}");
        for text in ["", "[]", "{} {}", r#"{"a":}"#] {
            assert!(members(text).is_err(), "{text}");
        }
    }

    fn field(value: &str) -> String {
        format!(r#"{{"n":{value}}}"#)
    }

    #[test]
    fn ids_are_short_texts_or_numbers() {
        for (value, id) in [
            (r#""a-1""#, Ok(Some("a-1"))),
            ("12345678901234567890", Ok(Some("12345678901234567890"))),
            ("null", Ok(None)),
            (r#""""#, Err(())),
            (r#""a b""#, Err(())),
            ("-1", Err(())),
            ("1.0", Err(())),
            ("1e3", Err(())),
            ("true", Err(())),
            ("{}", Err(())),
        ] {
            let text = field(value);
            let fields = Fields::read(&text, NAMES).unwrap();
            let found = fields.id_or_number("n");
            assert_eq!(found.as_ref().map(Option::as_deref).map_err(|_| ()), id, "{value}");
            assert_eq!(fields.text_or_number("n").as_deref(), id.ok().flatten(), "{value}");
        }
    }

    #[test]
    fn times_come_in_three_forms() {
        for (value, ms, seconds, rfc3339) in [
            ("1767237942", Some(1_767_237_942), Some(1_767_237_942_000), None),
            (r#""1767237942""#, Some(1_767_237_942), Some(1_767_237_942_000), None),
            ("253402300799999", Some(OCCURRED_AT_UNIX_MS_MAX), None, None),
            ("253402300800000", None, None, None),
            ("9223372036854775807", None, None, None),
            ("-1", None, None, None),
            ("1.5", None, None, None),
            (r#""2026-01-01T03:25:42.123Z""#, None, None, Some(1_767_237_942_123)),
            (r#""2026-01-01T04:25:42+01:00""#, None, None, Some(1_767_237_942_000)),
            (r#""1969-12-31T23:59:59Z""#, None, None, None),
            (r#""2026-01-01""#, None, None, None),
        ] {
            let text = field(value);
            let fields = Fields::read(&text, NAMES).unwrap();
            let found = (fields.time_in_ms("n"), fields.time_in_seconds("n"), fields.time_in_rfc3339("n"));
            assert_eq!(found, (ms, seconds, rfc3339), "{value}");
        }
    }

    #[test]
    fn a_wanted_field_may_not_come_twice() {
        assert!(Fields::read(r#"{"id":1,"\u0069d":2}"#, NAMES).is_err());
        assert!(Fields::read(r#"{"other":1,"other":2}"#, NAMES).is_ok());
    }
}
