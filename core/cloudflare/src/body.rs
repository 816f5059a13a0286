//! The body of a request, of which no more than the limit is ever held.

use js_sys::Uint8Array;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{ReadableStreamDefaultReader, Request};

use crate::js;

/// Why there is no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// It is larger than this many bytes.
    TooLarge(usize),
    /// It did not arrive whole.
    Unreadable,
}

/// The whole body. One that says it is too large is not read at all; one that does not say is read until it is too large.
pub async fn read(request: &Request, bytes_max: usize) -> Result<Vec<u8>, BodyError> {
    let stated = request.headers().get("content-length").ok().flatten();
    match stated.and_then(|length| length.parse::<usize>().ok()) {
        Some(length) if length > bytes_max => Err(BodyError::TooLarge(bytes_max)),
        Some(_) => whole(request).await.map_err(|_| BodyError::Unreadable),
        None => bounded(request, bytes_max).await,
    }
}

async fn whole(request: &Request) -> Result<Vec<u8>, JsValue> {
    let buffer = JsFuture::from(request.array_buffer()?).await?;
    Ok(Uint8Array::new(&buffer).to_vec())
}

async fn bounded(request: &Request, bytes_max: usize) -> Result<Vec<u8>, BodyError> {
    let mut body = Vec::new();
    let Some(stream) = request.body() else { return Ok(body) };
    let reader: ReadableStreamDefaultReader = stream.get_reader().unchecked_into();
    while let Some(chunk) = next_chunk(&reader).await.map_err(|_| BodyError::Unreadable)? {
        if body.len() + chunk.length() as usize > bytes_max {
            // The rest of the upload is not wanted; whether it can still be cut off changes nothing for the answer.
            let _ = reader.cancel();
            return Err(BodyError::TooLarge(bytes_max));
        }
        body.extend(chunk.to_vec());
    }
    Ok(body)
}

async fn next_chunk(reader: &ReadableStreamDefaultReader) -> Result<Option<Uint8Array>, JsValue> {
    let read = JsFuture::from(reader.read()).await?;
    let value = js::property(&read, "value");
    Ok(if value.is_undefined() { None } else { Some(value.dyn_into()?) })
}
