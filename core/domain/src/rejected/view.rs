//! One kept request as an operator sees it: everything but what would let them send requests in the provider's name.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;

use super::key::{RejectedKey, is_rejected_id};
use super::list::Rejected;
use super::request::RejectedRequest;
use crate::incident::OperationError;
use crate::ports::{BlobError, BlobKeeping};

/// What stands for a header's value that is a credential itself.
const HIDDEN: &str = "(hidden)";
/// Headers that are credentials themselves, by a part of their names. A signature is none: it fits this one request.
const CREDENTIALS: [&str; 6] = ["authorization", "cookie", "token", "secret", "password", "api-key"];

/// A kept request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RejectedDetails {
    /// What the list shows of it.
    #[serde(flatten)]
    pub rejected: Rejected,
    /// Why it was rejected, as a sentence.
    pub detail: String,
    /// Its method.
    pub method: String,
    /// Its URL, without the query, in which a secret may stand.
    pub url: String,
    /// Its headers; those that are credentials have no value.
    pub headers: Vec<(String, String)>,
    /// Its body, if it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Its body in base64, if it is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
}

/// Reads one kept request. Two calls.
pub async fn view<B: BlobKeeping>(blobs: &B, id: &str) -> Result<RejectedDetails, OperationError> {
    let (key, object) = find(blobs, id).await?;
    let (request, body) = readable(&object)?;
    let text = str::from_utf8(body).ok().map(str::to_owned);
    let body_base64 = text.is_none().then(|| BASE64.encode(body));
    let without_query = request.url.split('?').next().unwrap_or_default().to_owned();
    Ok(RejectedDetails {
        rejected: Rejected::from(key),
        detail: request.detail,
        method: request.method,
        url: without_query,
        headers: request.headers.into_iter().map(shown).collect(),
        body: text,
        body_base64,
    })
}

/// The key and the object of an id.
pub(super) async fn find<B: BlobKeeping>(
    blobs: &B,
    id: &str,
) -> Result<(RejectedKey, Vec<u8>), OperationError> {
    let gone = || OperationError::NotFound("rejected request");
    if !is_rejected_id(id) {
        return Err(gone());
    }
    let listing = blobs.list(&format!("{id}."), "", 1).await?;
    let object_key = listing.objects.first().map(|object| &object.key).ok_or_else(gone)?;
    let key = RejectedKey::parse(object_key).ok_or_else(gone)?;
    let object = blobs.get(object_key).await?.ok_or_else(gone)?;
    Ok((key, object))
}

/// The request and the body of an object that we have written.
pub(super) fn readable(object: &[u8]) -> Result<(RejectedRequest, &[u8]), OperationError> {
    RejectedRequest::of_object(object).map_err(|error| BlobError(error.to_string()).into())
}

fn shown((name, value): (String, String)) -> (String, String) {
    let lower = name.to_ascii_lowercase();
    let is_credential = CREDENTIALS.iter().any(|part| lower.contains(part));
    (name, if is_credential { HIDDEN.to_owned() } else { value })
}
