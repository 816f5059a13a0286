//! Keys that providers publish: fetched from where the provider's rules say, and kept for a while.

use std::cell::RefCell;
use std::collections::HashMap;

use serde_json::json;
use swarm_cloudflare::download::download;
use swarm_domain::time::Timestamp;
use swarm_verify::Rejection;
use swarm_verify::keys::KeySource;

use crate::LOG;

/// The largest document that is taken for a key, in bytes. Google's certificates are about 10 KB.
const KEY_BYTES_MAX: usize = 64 * 1024;
/// How long a provider may take. Its own deadline for our answer is seconds away.
const FETCH_MS: u64 = 3_000;
/// How long a key is used before it is fetched again, so that one that was withdrawn does not count much longer.
const KEEP_MS: i64 = 60 * 60 * 1000;
/// A document that lacks a key is fetched again at most this often, however many requests name a key that it lacks.
const REFRESH_MS: i64 = 60 * 1000;
/// How many documents are kept. Few are in use; more are somebody's who makes addresses up.
const KEPT_MAX: usize = 32;

struct Kept {
    fetched_at: Timestamp,
    text: String,
}

thread_local! {
    static KEPT: RefCell<HashMap<KeySource, Kept>> = RefCell::default();
}

/// The document at a source, from memory if it is there.
pub async fn get(source: &KeySource, now: Timestamp) -> Result<String, Rejection> {
    match kept(source, now, KEEP_MS) {
        Some(text) => Ok(text),
        None => fetch(source, now).await,
    }
}

/// The document once more, if the one in memory is so old that it may lack a newer key.
pub async fn refresh(source: &KeySource, now: Timestamp) -> Option<String> {
    match kept(source, now, REFRESH_MS) {
        Some(_) => None,
        None => fetch(source, now).await.ok(),
    }
}

fn kept(source: &KeySource, now: Timestamp, for_ms: i64) -> Option<String> {
    KEPT.with_borrow(|all| {
        let kept = all.get(source).filter(|kept| now < kept.fetched_at.plus_ms(for_ms))?;
        Some(kept.text.clone())
    })
}

async fn fetch(source: &KeySource, now: Timestamp) -> Result<String, Rejection> {
    let text = download(&source.url, source.body.as_deref(), KEY_BYTES_MAX, FETCH_MS).await;
    let text = text.map_err(|error| {
        LOG.error("a provider's key cannot be had", json!({ "url": source.url, "error": error }));
        Rejection::KeyUnavailable
    })?;
    KEPT.with_borrow_mut(|all| {
        if all.len() >= KEPT_MAX {
            all.clear();
        }
        all.insert(source.clone(), Kept { fetched_at: now, text: text.clone() });
    });
    Ok(text)
}
