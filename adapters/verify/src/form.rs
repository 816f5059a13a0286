//! Reads form bodies (`application/x-www-form-urlencoded`), and writes them as the JSON that payloads are.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::{Rejection, event::is_short_text};

/// The fields of a form in the order in which they came, decoded.
#[derive(Debug, Clone, Default)]
pub struct Form<'a> {
    fields: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Form<'a> {
    /// Reads a form.
    ///
    /// # Errors
    /// [`Rejection::Unreadable`] when it, or what it says when decoded, is not UTF-8: a replacement character would
    /// be something that nobody sent.
    pub fn read(body: &'a [u8]) -> Result<Self, Rejection> {
        let fields: Vec<_> = form_urlencoded::parse(body).collect();
        let is_replaced = |text: &Cow<'_, str>| text.contains(char::REPLACEMENT_CHARACTER);
        if fields.iter().any(|(name, value)| is_replaced(name) || is_replaced(value)) {
            return Err(Rejection::Unreadable("not UTF-8"));
        }
        Ok(Self { fields })
    }

    /// All fields, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }

    /// A field that may be there once; `None` when it is absent.
    ///
    /// # Errors
    /// [`Rejection::Unreadable`] when it is there more than once: which one counts would be a guess.
    pub fn single(&self, name: &str) -> Result<Option<&str>, Rejection> {
        let mut values = self.iter().filter(|(field, _)| *field == name).map(|(_, value)| value);
        let value = values.next();
        if values.next().is_some() {
            return Err(Rejection::Unreadable("a field of the form is there twice"));
        }
        Ok(value)
    }

    /// A field that is a convenience: `None` also when it is there twice or not a short text.
    #[must_use]
    pub fn short_text(&self, name: &str) -> Option<String> {
        let value = self.single(name).ok().flatten();
        value.filter(|value| is_short_text(value)).map(str::to_owned)
    }

    /// The fields as some providers sign them: sorted by name, each as its name and its value, without separators. Of a field
    /// that is there more than once, each value counts once, in order. Since nothing stands between them, the text does not tell
    /// where a name ends and its value begins.
    #[must_use]
    pub fn sorted_text(&self) -> String {
        let mut fields: Vec<_> = self.iter().collect();
        fields.sort_unstable();
        fields.dedup();
        fields.into_iter().flat_map(|(name, value)| [name, value]).collect()
    }

    /// The form as a JSON object: each field a text, one that is there more than once a list of texts.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut object: Map<String, Value> = Map::new();
        for (name, value) in self.iter() {
            let value = Value::from(value);
            match object.get_mut(name) {
                None => drop(object.insert(name.to_owned(), value)),
                Some(Value::Array(list)) => list.push(value),
                Some(first) => *first = Value::Array(vec![first.take(), value]),
            }
        }
        Value::Object(object).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_becomes_json() {
        let form = Form::read(b"b=2+2&a=%C3%A9&b=3&c=&d&b=%22").unwrap();
        assert_eq!(form.to_json(), r#"{"a":"é","b":["2 2","3","\""],"c":"","d":""}"#);
        assert_eq!((form.single("a"), form.single("x")), (Ok(Some("é")), Ok(None)));
        assert!(form.single("b").is_err());
        assert_eq!((form.short_text("b"), form.short_text("c"), form.short_text("a")), (None, None, None));
        assert_eq!(form.short_text("d").as_deref(), None);
        let form = Form::read(b"a=T1").unwrap();
        assert_eq!(form.short_text("a").as_deref(), Some("T1"));
    }

    #[test]
    fn signed_fields_are_sorted_by_their_bytes() {
        let form = Form::read(b"b=2&B=3&a=1&b=1&b=2&c=").unwrap();
        assert_eq!(form.sorted_text(), "B3a1b1b2c");
    }

    #[test]
    fn what_is_not_utf_8_is_refused() {
        for body in [&b"a=%ff"[..], b"a=\xff", b"%80=1"] {
            assert!(Form::read(body).is_err(), "{body:?}");
        }
        assert!(Form::read(b"a=%zz&%").is_ok(), "a stray percent sign is text");
    }
}
