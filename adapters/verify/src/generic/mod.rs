//! Providers by configuration alone, for those that nobody has written a file for.
//!
//! A scheme says how requests are verified and where the event's id, type and time are. One that is unknown, incomplete or
//! contradicts itself is refused when it is read, so there is no "no verification" by omission.

mod place;
mod scheme;
mod template;

use std::borrow::Cow;

use crate::{
    Context, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    authorization::{credentials, login},
    body::json_text,
    event::{event_type_or_unknown, is_short_text},
    form::Form,
    signature::{
        hmac_sha1, hmac_sha256, hmac_sha512, parse_unix_seconds, require_equal, require_fresh, require_match,
        sha256_hex,
    },
};

use self::place::{Document, Place};
pub use self::scheme::SchemeError;
use self::scheme::{Algorithm, Body, Check, HmacCheck, Scheme};

/// A provider that a scheme describes.
#[derive(Debug, Clone)]
pub struct Generic {
    name: String,
    scheme: Scheme,
}

impl Generic {
    /// Reads a scheme, which is JSON text, for the provider `name`.
    ///
    /// # Errors
    /// [`SchemeError`] says which field is wrong and why.
    pub fn parse(name: &str, scheme: &str) -> Result<Self, SchemeError> {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(SchemeError::new("name", "must be lower-case letters, digits and underscores"));
        }
        Ok(Self { name: name.to_owned(), scheme: Scheme::parse(scheme)? })
    }

    fn check(&self, request: &Request<'_>, settings: &Settings, now_unix: i64) -> Result<(), Rejection> {
        match &self.scheme.check {
            Check::Hmac(hmac) => hmac.check(request, settings, now_unix),
            Check::ApiKey { header } => require_equal(&settings.secrets, request.headers.signature(header)?),
            Check::Bearer => require_equal(&settings.secrets, credentials(request, "bearer")?),
            Check::Basic => require_equal(&settings.secrets, &login(request)?),
        }
    }

    fn read<'a>(&self, request: &Request<'a>) -> Result<VerifiedEvent<'a>, Rejection> {
        let payload: Cow<'a, str> = match self.scheme.body {
            Body::Json => json_text(request.body)?.into(),
            Body::Form => Form::read(request.body)?.to_json().into(),
        };
        let document = Document::parse(&payload)?;
        let find = |place: &Option<Place>| match place {
            Some(place) => place.find(&document, request),
            None => Ok(None),
        };
        let id = find(&self.scheme.id)?;
        if id.as_deref().is_some_and(|id| !is_short_text(id)) {
            return Err(Rejection::Unreadable("the id is not a short text"));
        }
        let is_id_unsigned = self.scheme.is_id_unsigned();
        let occurred_at = find(&self.scheme.time).unwrap_or_default();
        Ok(VerifiedEvent {
            fact: if is_id_unsigned { vec![sha256_hex(request.body)] } else { Vec::new() },
            id,
            is_id_unsigned,
            event_type: event_type_or_unknown(&self.name, find(&self.scheme.event_type)?.as_deref()),
            occurred_at_unix_ms: occurred_at.as_deref().and_then(place::unix_ms),
            payload,
            ..VerifiedEvent::default()
        })
    }
}

impl Provider for Generic {
    fn name(&self) -> &str {
        &self.name
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method("POST")?;
        request.require_media_type(self.scheme.body.media_type())?;
        settings.require_secrets()?;
        self.check(request, settings, context.now_unix)?;
        Ok(Verified::new(vec![self.read(request)?]))
    }
}

impl HmacCheck {
    fn check(&self, request: &Request<'_>, settings: &Settings, now_unix: i64) -> Result<(), Rejection> {
        let header = request.headers.signature(&self.header)?;
        let digest = header.strip_prefix(&self.prefix);
        let digest = digest.ok_or(Rejection::SignatureMalformed("without its prefix"))?;
        let parts = self.signed.parts(request)?;
        let parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
        match self.algorithm {
            Algorithm::Sha256 => self.require(settings, digest, &parts, hmac_sha256)?,
            Algorithm::Sha512 => self.require(settings, digest, &parts, hmac_sha512)?,
            Algorithm::Sha1 => self.require(settings, digest, &parts, hmac_sha1)?,
        }
        let Some(header) = self.signed.timestamp_header() else { return Ok(()) };
        let signed_unix = parse_unix_seconds(request.headers.signature(header)?)
            .ok_or(Rejection::SignatureMalformed("the time is not a number of seconds"))?;
        require_fresh(signed_unix, now_unix, settings.tolerance_seconds)
    }

    fn require<const N: usize>(
        &self,
        settings: &Settings,
        digest: &str,
        parts: &[&[u8]],
        hmac: fn(&[u8], &[&[u8]]) -> [u8; N],
    ) -> Result<(), Rejection> {
        let offered = self.encoding.decode::<N>(digest);
        let offered = offered.ok_or(Rejection::SignatureMalformed("not one digest in its encoding"))?;
        require_match(&settings.secrets, &[offered], |secret| hmac(secret.expose().as_bytes(), parts))
    }
}

#[cfg(test)]
mod tests;
