//! Keys that providers publish: fetched from where the provider's rules say, as seldom as `key_cache` allows.

use std::cell::RefCell;

use serde_json::json;
use swarm_cloudflare::download::download;
use swarm_domain::time::Timestamp;
use swarm_verify::Rejection;
use swarm_verify::key_cache::{KeyCache, Known};
use swarm_verify::keys::KeySource;

use crate::LOG;

/// The largest document that is taken for a key, in bytes. Google's certificates are about 10 KB.
const KEY_BYTES_MAX: usize = 64 * 1024;
/// How long a provider may take. Its own deadline for our answer is seconds away.
const FETCH_MS: u64 = 3_000;

thread_local! {
    static CACHE: RefCell<KeyCache> = RefCell::default();
}

/// The document at a source, from memory if it is there.
pub async fn get(source: &KeySource, now: Timestamp) -> Result<String, Rejection> {
    match CACHE.with_borrow_mut(|cache| cache.look(source, now.unix_ms())) {
        Known::Key(text) => Ok(text),
        Known::Missing => Err(Rejection::KeyUnavailable),
        Known::Unknown => fetch(source, now).await,
    }
}

/// The document once more, if the one in memory is so old that it may lack a newer key.
pub async fn refresh(source: &KeySource, now: Timestamp) -> Option<String> {
    if !CACHE.with_borrow(|cache| cache.is_old(source, now.unix_ms())) {
        return None;
    }
    fetch(source, now).await.ok()
}

async fn fetch(source: &KeySource, now: Timestamp) -> Result<String, Rejection> {
    let fetched = download(&source.url, source.body.as_deref(), KEY_BYTES_MAX, FETCH_MS).await;
    let text = fetched.as_ref().ok().cloned();
    CACHE.with_borrow_mut(|cache| cache.note(source, text, now.unix_ms()));
    fetched.map_err(|error| {
        LOG.error("a provider's key cannot be had", json!({ "url": source.url, "error": error }));
        Rejection::KeyUnavailable
    })
}
