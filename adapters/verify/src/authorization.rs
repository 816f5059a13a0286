//! Credentials in the header `Authorization`, for those who sign nothing and send a password instead.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};

use crate::{Rejection, Request};

/// What follows the name of the scheme, `basic` or `bearer` in any case of its letters.
///
/// # Errors
/// [`Rejection::SignatureMissing`] or [`Rejection::SignatureMalformed`].
pub fn credentials<'a>(request: &Request<'a>, scheme: &str) -> Result<&'a str, Rejection> {
    let header = request.headers.signature("authorization")?;
    let (name, rest) = header.split_once(' ').unwrap_or_default();
    if name.eq_ignore_ascii_case(scheme) {
        Ok(rest.trim_start())
    } else {
        Err(Rejection::SignatureMalformed("another authorization scheme"))
    }
}

/// `user:password` of a basic authorization.
///
/// # Errors
/// The same.
pub fn login(request: &Request<'_>) -> Result<String, Rejection> {
    let decoded = BASE64.decode(credentials(request, "basic")?).ok();
    let login = decoded.and_then(|bytes| String::from_utf8(bytes).ok()).filter(|login| login.contains(':'));
    login.ok_or(Rejection::SignatureMalformed("not user:password in base64"))
}
