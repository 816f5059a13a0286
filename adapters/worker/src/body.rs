//! Reading a body without ever holding more of it than the limit allows.

use futures_util::StreamExt;
use worker::Request;

use crate::answer::Refusal;

/// The whole body. One that says it is too large is not read at all; one that does not say is read until it is too large.
pub async fn read(request: &mut Request, bytes_max: usize) -> Result<Vec<u8>, Refusal> {
    let stated = request.headers().get("content-length").ok().flatten();
    match stated.and_then(|length| length.parse::<usize>().ok()) {
        Some(length) if length > bytes_max => Err(Refusal::TooLarge(bytes_max)),
        Some(_) => request.bytes().await.map_err(|_| Refusal::Unreadable),
        None => read_chunks(request, bytes_max).await,
    }
}

async fn read_chunks(request: &mut Request, bytes_max: usize) -> Result<Vec<u8>, Refusal> {
    let mut body = Vec::new();
    if request.inner().body().is_none() {
        return Ok(body);
    }
    let mut chunks = request.stream().map_err(|_| Refusal::Unreadable)?;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| Refusal::Unreadable)?;
        if body.len() + chunk.len() > bytes_max {
            return Err(Refusal::TooLarge(bytes_max));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
