//! Objects: written once, read to the byte, and missing without an error.

use swarm_domain::ports::{BlobError, Blobs};

use crate::case::{CaseResult, Check, case, equal, holds};

/// Runs every case about the blob store, under keys that begin with `conformance/`.
pub async fn run_blobs<B: Blobs>(blobs: &B) -> Vec<CaseResult> {
    vec![
        case("an object that is not there is none", missing(blobs)).await,
        case("the first put of a key stays", first_stays(blobs)).await,
        case("an empty object is there", empty(blobs)).await,
        case("1 MiB of binary comes back to the byte", binary(blobs)).await,
        case("a key of more than 1,024 bytes is refused", long_key(blobs)).await,
    ]
}

fn text(error: BlobError) -> String {
    error.to_string()
}

async fn missing<B: Blobs>(blobs: &B) -> Check {
    equal("object", blobs.get("conformance/nothing").await.map_err(text)?, None)
}

async fn first_stays<B: Blobs>(blobs: &B) -> Check {
    let key = "conformance/é first";
    for content in [b"first", b"other"] {
        blobs.put(key, content.to_vec()).await.map_err(text)?;
        equal("object", blobs.get(key).await.map_err(text)?, Some(b"first".to_vec()))?;
    }
    Ok(())
}

async fn empty<B: Blobs>(blobs: &B) -> Check {
    blobs.put("conformance/empty", Vec::new()).await.map_err(text)?;
    equal("object", blobs.get("conformance/empty").await.map_err(text)?, Some(Vec::new()))
}

async fn binary<B: Blobs>(blobs: &B) -> Check {
    let bytes: Vec<u8> = (0..1_u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    blobs.put("conformance/binary", bytes.clone()).await.map_err(text)?;
    let seen = blobs.get("conformance/binary").await.map_err(text)?.unwrap_or_default();
    equal("length", seen.len(), bytes.len())?;
    holds("some bytes changed", seen == bytes)
}

async fn long_key<B: Blobs>(blobs: &B) -> Check {
    let answer = blobs.put(&format!("conformance/{}", "k".repeat(1_024)), vec![1]).await;
    holds("it was taken", answer.is_err())
}
