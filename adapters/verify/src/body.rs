//! Reads JSON bodies without rewriting them.
//!
//! The payload of an event is the text that came, so a body is checked and looked into, but never turned into a
//! tree of values and back: numbers keep their digits, keys their order, strings their escapes. Only the few
//! fields that a provider names are decoded.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
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
    let mut bytes = text.as_bytes().iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => pass_string(&mut bytes),
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

/// Goes on behind the quote that ends a string.
fn pass_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
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
    found: Vec<Found<'a>>,
}

/// A field and its text. Of an object that was only gone through on the way to a field further in there is none, and none of a
/// field further in that is there twice.
type Found<'a> = (&'static str, Option<&'a RawValue>);

impl<'a> Fields<'a> {
    /// Picks the fields `names` out of a JSON object and passes over all others, in one scan. A name may lead further in:
    /// `data/object/id` is the field `id` of the object `object` of the object `data`.
    ///
    /// # Errors
    /// [`Rejection::Unreadable`] when the text is not one JSON object, or holds one of the outermost of `names` twice: readers
    /// differ in which one they take, and an id must not depend on the reader. A field further in that is there twice counts as
    /// absent. Other duplicates are let through.
    pub fn read(text: &'a str, names: &'static [&'static str]) -> Result<Self, Rejection> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let mut found = Vec::with_capacity(names.len());
        deserializer
            .deserialize_map(Pick { names, way: "", found: &mut found })
            .and_then(|()| deserializer.end())
            .map_err(|_| Rejection::Unreadable("not a JSON object, or an important field is there twice"))?;
        Ok(Self { found })
    }

    /// A field's JSON text; `None` when it is absent or `null`.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.found.iter().find(|(field, _)| *field == name)?;
        value.map(RawValue::get).filter(|text| *text != "null")
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
struct Pick<'f, 'a> {
    names: &'static [&'static str],
    /// The beginning of the names that leads to this object; empty for the outermost.
    way: &'static str,
    found: &'f mut Vec<Found<'a>>,
}

impl<'de> DeserializeSeed<'de> for Pick<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Pick<'_, 'de> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key_seed(WantedKey { names: self.names, way: self.way })? {
            let Some((way, is_field)) = key else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let earlier = self.found.iter().find(|(name, _)| *name == way);
            if self.way.is_empty() && earlier.is_some() {
                return Err(M::Error::duplicate_field("of those wanted"));
            }
            match earlier {
                Some(_) => {
                    let there = self.found.iter_mut().filter(|(name, _)| name.starts_with(way));
                    there.for_each(|(_, value)| *value = None);
                    map.next_value::<IgnoredAny>()?;
                }
                None if is_field => {
                    let value = map.next_value()?;
                    self.found.push((way, Some(value)));
                }
                None => {
                    self.found.push((way, None));
                    let (names, found) = (self.names, &mut *self.found);
                    map.next_value_seed(Pick { names, way, found })?;
                }
            }
        }
        Ok(())
    }

    // On the way to a field further in there may be anything. The outermost value has been asked to be an object.
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<(), S::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Deserializes a key into the part of a wanted name that leads to it, escapes decoded, without keeping the key; and whether that
/// is all of the name.
struct WantedKey {
    names: &'static [&'static str],
    way: &'static str,
}

impl<'de> DeserializeSeed<'de> for WantedKey {
    type Value = Option<(&'static str, bool)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for WantedKey {
    type Value = Option<(&'static str, bool)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.names.iter().find_map(|name| {
            let here = match self.way {
                "" => name,
                way => name.strip_prefix(way)?.strip_prefix('/')?,
            };
            let rest = here.strip_prefix(key)?;
            let way = name.get(..name.len() - rest.len())?;
            let is_way = (rest.is_empty() || rest.starts_with('/')) && !key.contains('/');
            is_way.then_some((way, rest.is_empty()))
        }))
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
    fn a_name_may_lead_further_in() {
        const WAYS: &[&str] = &["id", "a/b/id", "a/x", "a_x", "c/id"];
        let read = |text| {
            let fields = Fields::read(text, WAYS).unwrap();
            WAYS.iter()
                .filter_map(|way| Some(format!("{way}={}", fields.raw(way)?)))
                .collect::<Vec<_>>()
                .join(" ")
        };
        for (text, expected) in [
            (r#"{"a":{"id":0,"b":{"id":1.0,"x":3},"x":[4]},"id":5}"#, "id=5 a/b/id=1.0 a/x=[4]"),
            (r#"{"a_x":1,"a/x":2,"a":{"a_x":3}}"#, "a_x=1"),
            (r#"{"a":{"b":7,"x":8},"c":[{"id":1}]}"#, "a/x=8"),
            (r#"{"a":null,"c":"text","id":1e400}"#, "id=1e400"),
            (r#"{"a":{"b":{"id":1,"id":2},"x":3,"x":4}}"#, ""),
            (r#"{"a":{"b":{"id":1},"b":{"id":2},"x":3}}"#, "a/x=3"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        for text in [
            r#"{"a":{},"a":{"x":1}}"#,
            r#"{"id":1,"id":1}"#,
            r#"{"a":{"b":}}"#,
            r#"[{"id":1}]"#,
            r#"{"a":{}"#,
        ] {
            assert!(Fields::read(text, WAYS).is_err(), "{text}");
        }
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
