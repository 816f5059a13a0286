//! The configuration of a generic provider: how a request is verified, and where its event's fields are.

use serde::Deserialize;

use super::place::Place;
use super::template::Template;
use crate::signature::{decode_base64, decode_hex_lower};

/// What is wrong with a scheme, and with which of its fields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {why}")]
pub struct SchemeError {
    field: &'static str,
    why: String,
}

impl SchemeError {
    pub(super) fn new(field: &'static str, why: impl Into<String>) -> Self {
        Self { field, why: why.into() }
    }
}

/// A scheme that was read and makes sense.
#[derive(Debug, Clone)]
pub(super) struct Scheme {
    pub check: Check,
    pub body: Body,
    pub id: Option<Place>,
    pub event_type: Option<Place>,
    pub time: Option<Place>,
}

/// How a request is verified.
#[derive(Debug, Clone)]
pub(super) enum Check {
    Hmac(HmacCheck),
    /// A header equals a secret.
    ApiKey {
        header: String,
    },
    /// `Authorization: Bearer`, and a secret.
    Bearer,
    /// `Authorization: Basic`; the secret is `user:password`.
    Basic,
}

/// A header is a keyed digest of the request.
#[derive(Debug, Clone)]
pub(super) struct HmacCheck {
    pub algorithm: Algorithm,
    pub header: String,
    pub prefix: String,
    pub encoding: Encoding,
    pub signed: Template,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Algorithm {
    #[default]
    Sha256,
    Sha512,
    Sha1,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Encoding {
    #[default]
    Hex,
    Base64,
}

impl Encoding {
    pub fn decode<const N: usize>(self, text: &str) -> Option<[u8; N]> {
        match self {
            Self::Hex => decode_hex_lower(text),
            Self::Base64 => decode_base64(text),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Body {
    #[default]
    Json,
    Form,
}

impl Body {
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Form => "application/x-www-form-urlencoded",
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Verify {
    Hmac,
    Basic,
    ApiKey,
    Bearer,
}

/// A scheme as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    verify: Verify,
    header: Option<String>,
    algorithm: Option<Algorithm>,
    prefix: Option<String>,
    encoding: Option<Encoding>,
    signed: Option<String>,
    timestamp: Option<String>,
    #[serde(default)]
    body: Body,
    id: Option<String>,
    r#type: Option<String>,
    time: Option<String>,
}

impl Scheme {
    pub fn parse(text: &str) -> Result<Self, SchemeError> {
        let written: Written = serde_json::from_str(text)
            .map_err(|error| SchemeError::new("scheme", format!("is not one: {error}")))?;
        let place = |field, text: &Option<String>| {
            text.as_deref()
                .map(|text| Place::parse(text).map_err(|why| SchemeError::new(field, why)))
                .transpose()
        };
        Ok(Self {
            id: place("id", &written.id)?,
            event_type: place("type", &written.r#type)?,
            time: place("time", &written.time)?,
            body: written.body,
            check: written.check()?,
        })
    }

    /// Whether the id stands in a header that the signature does not cover. Tokens and passwords cover nothing, and whoever
    /// has seen one needs no old request.
    pub fn is_id_unsigned(&self) -> bool {
        match (&self.check, &self.id) {
            (Check::Hmac(hmac), Some(Place::Header(name))) => !hmac.signed.covers_header(name),
            _ => false,
        }
    }
}

impl Written {
    fn check(self) -> Result<Check, SchemeError> {
        if !matches!(self.verify, Verify::Hmac) {
            self.refuse_fields_of_hmac()?;
        }
        match self.verify {
            Verify::Hmac => self.hmac().map(Check::Hmac),
            Verify::ApiKey => Ok(Check::ApiKey { header: header_name(self.header)? }),
            Verify::Basic | Verify::Bearer if self.header.is_some() => {
                Err(SchemeError::new("header", "is always authorization with basic and bearer"))
            }
            Verify::Basic => Ok(Check::Basic),
            Verify::Bearer => Ok(Check::Bearer),
        }
    }

    fn hmac(self) -> Result<HmacCheck, SchemeError> {
        let template = self.signed.as_deref().unwrap_or("{body}");
        let signed =
            Template::parse(template, self.timestamp).map_err(|why| SchemeError::new("signed", why))?;
        Ok(HmacCheck {
            algorithm: self.algorithm.unwrap_or_default(),
            header: header_name(self.header)?,
            prefix: self.prefix.unwrap_or_default(),
            encoding: self.encoding.unwrap_or_default(),
            signed,
        })
    }

    /// What is configured and has no effect was meant to protect something.
    fn refuse_fields_of_hmac(&self) -> Result<(), SchemeError> {
        let present = [
            ("algorithm", self.algorithm.is_some()),
            ("prefix", self.prefix.is_some()),
            ("encoding", self.encoding.is_some()),
            ("signed", self.signed.is_some()),
            ("timestamp", self.timestamp.is_some()),
        ];
        match present.into_iter().find(|(_, is_present)| *is_present) {
            Some((field, _)) => Err(SchemeError::new(field, "belongs to hmac")),
            None => Ok(()),
        }
    }
}

fn header_name(name: Option<String>) -> Result<String, SchemeError> {
    let name = name.ok_or_else(|| SchemeError::new("header", "is missing"))?;
    if is_header_name(&name) {
        Ok(name)
    } else {
        Err(SchemeError::new("header", "is not the name of a header"))
    }
}

pub(super) fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}
