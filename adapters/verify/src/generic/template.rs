//! What is signed: a text with places for parts of the request, such as `{timestamp}.{body}`.

use std::borrow::Cow;

use super::scheme::is_header_name;
use crate::{Rejection, Request};

/// A template that was read. The body is always in it.
#[derive(Debug, Clone)]
pub(super) struct Template {
    pieces: Vec<Piece>,
    timestamp: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Method,
    Url,
    Body,
    Timestamp,
    Header(String),
}

impl Template {
    /// Reads a template; `timestamp` is the header that holds the signed time.
    pub fn parse(text: &str, timestamp: Option<String>) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, from_place)) = rest.split_once('{') {
            let (place, after) = from_place.split_once('}').ok_or("has a { without a }")?;
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            pieces.push(Piece::parse(place)?);
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        let has = |piece: &Piece| pieces.contains(piece);
        if !has(&Piece::Body) {
            return Err("does not hold {body}, so anybody could change it".to_owned());
        }
        match &timestamp {
            None if has(&Piece::Timestamp) => {
                Err("holds {timestamp}, and `timestamp` names no header".to_owned())
            }
            Some(_) if !has(&Piece::Timestamp) => {
                Err("does not hold {timestamp}; a time that is not signed proves nothing".to_owned())
            }
            Some(name) if !is_header_name(name) => {
                Err("needs the name of a header in `timestamp`".to_owned())
            }
            _ => Ok(Self { pieces, timestamp }),
        }
    }

    /// The bytes that are signed, in parts.
    pub fn parts<'a>(&'a self, request: &'a Request<'_>) -> Result<Vec<Cow<'a, [u8]>>, Rejection> {
        self.pieces.iter().map(|piece| self.part(piece, request)).collect()
    }

    /// The header that holds the signed time.
    pub fn timestamp_header(&self) -> Option<&str> {
        self.timestamp.as_deref()
    }

    /// Whether a header is among what is signed.
    pub fn covers_header(&self, name: &str) -> bool {
        let is_it = |header: &String| header.eq_ignore_ascii_case(name);
        self.timestamp.as_ref().is_some_and(is_it)
            || self.pieces.iter().any(|piece| matches!(piece, Piece::Header(header) if is_it(header)))
    }

    fn part<'a>(&'a self, piece: &'a Piece, request: &'a Request<'_>) -> Result<Cow<'a, [u8]>, Rejection> {
        let header = |name: &'a str| request.headers.signature(name).map(str::as_bytes);
        Ok(Cow::Borrowed(match piece {
            Piece::Text(text) => text.as_bytes(),
            Piece::Method => request.method.as_bytes(),
            Piece::Url => request.url.as_bytes(),
            Piece::Body => request.body,
            Piece::Timestamp => header(self.timestamp.as_deref().unwrap_or_default())?,
            Piece::Header(name) => header(name)?,
        }))
    }
}

impl Piece {
    fn parse(place: &str) -> Result<Self, String> {
        match place {
            "method" => Ok(Self::Method),
            "url" => Ok(Self::Url),
            "body" => Ok(Self::Body),
            "timestamp" => Ok(Self::Timestamp),
            other => match other.strip_prefix("header:") {
                Some(name) if is_header_name(name) => Ok(Self::Header(name.to_owned())),
                _ => Err(format!(
                    "holds {{{other}}}; there are {{method}}, {{url}}, {{body}}, {{timestamp}} and {{header:name}}"
                )),
            },
        }
    }
}
