//! The request as it arrived, and the few questions that every provider asks about it.

use crate::{Rejection, event::is_short_text, form::Form};

/// A request as it arrived. Nothing in it is trusted.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Upper-case method, `POST`.
    pub method: &'a str,
    /// The public URL that the provider called, with its query: some providers sign it.
    pub url: &'a str,
    /// All headers.
    pub headers: &'a Headers,
    /// The raw body. Signatures are over these bytes, so nothing may decode or trim them on the way.
    pub body: &'a [u8],
}

impl<'a> Request<'a> {
    /// Refuses every method but `expected`.
    ///
    /// # Errors
    /// [`Rejection::MethodNotAllowed`].
    pub fn require_method(&self, expected: &str) -> Result<(), Rejection> {
        if self.method == expected { Ok(()) } else { Err(Rejection::MethodNotAllowed) }
    }

    /// Refuses a content type other than `expected` (`application/json`); its parameters do not count. A request
    /// without one passes: the signature does not cover the header, so its absence says nothing.
    ///
    /// # Errors
    /// [`Rejection::UnsupportedMediaType`], also when the header is there twice.
    pub fn require_media_type(&self, expected: &str) -> Result<(), Rejection> {
        self.require_media_type_among(&[expected])
    }

    /// Refuses a content type that is none of `expected`, in the same way. Which one it is is not told: the header
    /// is not signed, so a provider with two kinds of body has to tell them apart by the body.
    ///
    /// # Errors
    /// [`Rejection::UnsupportedMediaType`].
    pub fn require_media_type_among(&self, expected: &[&str]) -> Result<(), Rejection> {
        let header = self.headers.single("content-type").map_err(|_| Rejection::UnsupportedMediaType)?;
        let Some(value) = header else { return Ok(()) };
        let media_type = value.split(';').next().unwrap_or_default().trim();
        let is_expected = expected.iter().any(|expected| media_type.eq_ignore_ascii_case(expected));
        if is_expected { Ok(()) } else { Err(Rejection::UnsupportedMediaType) }
    }

    /// The parameters in the query of the URL, which is written like a form; empty when there is no query.
    ///
    /// # Errors
    /// [`Rejection::Unreadable`] when they are not UTF-8.
    pub fn query(&self) -> Result<Form<'a>, Rejection> {
        let url = self.url.split('#').next().unwrap_or_default();
        Form::read(url.split_once('?').map_or("", |(_, query)| query).as_bytes())
    }
}

/// Header fields in the order in which they came; names are matched without regard to case.
///
/// The Workers runtime joins repeated fields with `, ` before anybody sees them. A provider whose header cannot
/// hold a blank should therefore refuse one that does, beside asking for [`Headers::single`].
#[derive(Debug, Clone, Default)]
pub struct Headers {
    fields: Vec<(String, String)>,
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(fields: I) -> Self {
        Self { fields: fields.into_iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }
}

impl Headers {
    /// Every field, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// All values of a header, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields
            .iter()
            .filter(move |(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The value of a header that may be there once, or `None` when it is absent.
    ///
    /// # Errors
    /// [`RepeatedHeader`] when it is there more than once: which of the values counts would be a guess, and two
    /// readers may guess differently.
    pub fn single(&self, name: &str) -> Result<Option<&str>, RepeatedHeader> {
        let mut found = None;
        for (field, value) in &self.fields {
            if field.eq_ignore_ascii_case(name) && found.replace(value.as_str()).is_some() {
                return Err(RepeatedHeader);
            }
        }
        Ok(found)
    }

    /// The value of a header without which nothing can be verified.
    ///
    /// # Errors
    /// [`Rejection::SignatureMissing`] when it is absent, [`Rejection::SignatureMalformed`] when it is there twice.
    pub fn signature(&self, name: &str) -> Result<&str, Rejection> {
        let value =
            self.single(name).map_err(|_| Rejection::SignatureMalformed("the header is there twice"))?;
        value.ok_or(Rejection::SignatureMissing)
    }

    /// The value of a header that an event is read from; `None` when it is absent.
    ///
    /// # Errors
    /// [`Rejection::Unreadable`] when it is there more than once.
    pub fn field(&self, name: &str) -> Result<Option<&str>, Rejection> {
        self.single(name).map_err(|_| Rejection::Unreadable("a header is there twice"))
    }

    /// An id in a header: 1–200 visible ASCII characters; `None` when the header is absent.
    ///
    /// # Errors
    /// [`Rejection::Unreadable`] when it is there more than once or in another form.
    pub fn id(&self, name: &str) -> Result<Option<&str>, Rejection> {
        let id = self.field(name)?;
        if id.is_none_or(is_short_text) { Ok(id) } else { Err(Rejection::Unreadable("an id in a header")) }
    }

    /// The same where it is never absent.
    ///
    /// # Errors
    /// [`Rejection::Unreadable`] also when the header is absent.
    pub fn required_id(&self, name: &str) -> Result<&str, Rejection> {
        self.id(name)?.ok_or(Rejection::Unreadable("a header is missing"))
    }
}

/// A header that may be there once was there more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the header is there more than once")]
pub struct RepeatedHeader;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_names_match_in_any_case() {
        let headers = Headers::from_iter([("sTrIpE-SiGnAtUrE", "a")]);
        assert_eq!(headers.single("Stripe-Signature"), Ok(Some("a")));
        assert_eq!(headers.single("Stripe-Signatur"), Ok(None));
    }

    #[test]
    fn an_id_in_a_header_is_a_short_text() {
        let headers =
            Headers::from_iter([("x-a", "1"), ("x-b", "1 2"), ("x-c", ""), ("x-d", "1"), ("X-D", "1")]);
        assert_eq!((headers.id("X-A"), headers.required_id("X-A")), (Ok(Some("1")), Ok("1")));
        assert!(headers.id("x-e") == Ok(None) && headers.required_id("x-e").is_err());
        for name in ["x-b", "x-c", "x-d"] {
            assert!(headers.id(name).is_err() && headers.required_id(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_repeated_header_is_noticed() {
        let headers = Headers::from_iter([("X-A", "1"), ("x-b", "2"), ("x-a", "3")]);
        assert_eq!(headers.single("x-a"), Err(RepeatedHeader));
        assert_eq!(headers.all("X-a").collect::<Vec<_>>(), ["1", "3"]);
    }

    #[test]
    fn only_the_media_type_counts() {
        let check = |fields: &[(&str, &str)]| {
            let headers: Headers = fields.iter().copied().collect();
            let request = Request { method: "POST", url: "", headers: &headers, body: b"" };
            request.require_media_type("application/json")
        };
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[("content-type", "application/json")]), Ok(()));
        assert_eq!(check(&[("Content-Type", "Application/JSON ; charset=utf-8")]), Ok(()));
        for other in ["", "text/plain", "application/json-seq", "application/json, text/plain"] {
            assert_eq!(check(&[("content-type", other)]), Err(Rejection::UnsupportedMediaType), "{other}");
        }
        let twice = [("content-type", "application/json"), ("content-type", "application/json")];
        assert_eq!(check(&twice), Err(Rejection::UnsupportedMediaType));
    }

    #[test]
    fn a_media_type_may_be_one_of_several() {
        for (media_type, passes) in [("a/b", true), ("C/D; q=1", true), ("a/d", false), ("", false)] {
            let headers = Headers::from_iter([("content-type", media_type)]);
            let request = Request { method: "POST", url: "", headers: &headers, body: b"" };
            assert_eq!(request.require_media_type_among(&["a/b", "c/d"]).is_ok(), passes, "{media_type}");
        }
    }

    #[test]
    fn the_query_is_read_like_a_form() {
        for (url, a) in [
            ("https://x.test/p?a=%201&b=2", Some(" 1")),
            ("https://x.test/p?b=?&a=1#a=2", Some("1")),
            ("https://x.test/p#?a=1", None),
            ("https://x.test/a=1", None),
            ("", None),
        ] {
            let request = Request { method: "GET", url, headers: &Headers::default(), body: b"" };
            assert_eq!(request.query().unwrap().single("a"), Ok(a), "{url}");
        }
    }
}
