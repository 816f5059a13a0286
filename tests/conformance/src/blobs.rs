//! Objects: written once, read to the byte, and missing without an error.

use swarm_domain::ports::{BlobError, BlobKeeping, Blobs};

use crate::case::{CaseResult, Check, case, equal, holds};

/// Runs every case about the blob store, under keys that begin with `conformance/`.
pub async fn run_blobs<B: BlobKeeping>(blobs: &B) -> Vec<CaseResult> {
    vec![
        case("an object that is not there is none", missing(blobs)).await,
        case("the first put of a key stays", first_stays(blobs)).await,
        case("an empty object is there", empty(blobs)).await,
        case("1 MiB of binary comes back to the byte", binary(blobs)).await,
        case("a key of more than 1,024 bytes is refused", long_key(blobs)).await,
        case("a list is in the order of the keys and goes on after any of them", listing(blobs)).await,
        case("a copy has the same bytes and replaces what was there", copying(blobs)).await,
        case("deleting takes away those objects that are there", deleting(blobs)).await,
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

async fn listing<B: BlobKeeping>(blobs: &B) -> Check {
    for key in ["b", "a/2", "a/10", "é", "a"] {
        blobs.put(&format!("conformance/list/{key}"), vec![1, 2]).await.map_err(text)?;
    }
    let names = async |prefix: &str, after: &str, limit| {
        let listing = blobs.list(prefix, after, limit).await.map_err(text)?;
        holds("a size is wrong", listing.objects.iter().all(|object| object.bytes == 2))?;
        let names = listing.objects.iter().map(|object| object.key.replacen("conformance/list/", "", 1));
        Ok::<_, String>((names.collect::<Vec<_>>().join(" "), listing.more))
    };
    let all = |text: &str, more| (text.to_owned(), more);
    let prefix = "conformance/list/";
    equal("all", names(prefix, "", 10).await?, all("a a/10 a/2 b é", false))?;
    equal("some", names(prefix, "", 2).await?, all("a a/10", true))?;
    equal("the rest", names(prefix, &format!("{prefix}a/10"), 10).await?, all("a/2 b é", false))?;
    equal("after no object", names(prefix, &format!("{prefix}a/1"), 1).await?, all("a/10", true))?;
    equal("below", names(&format!("{prefix}a/"), "", 10).await?, all("a/10 a/2", false))?;
    equal("nothing", names("conformance/none/", "", 10).await?, all("", false))
}

async fn copying<B: BlobKeeping>(blobs: &B) -> Check {
    let (from, to) = ("conformance/copy/from", "conformance/copy/to");
    let bytes: Vec<u8> = (0..100_000_u32).map(|n| n.wrapping_mul(31) as u8).collect();
    equal("a copy of nothing", blobs.copy("conformance/copy/none", to).await.map_err(text)?, false)?;
    blobs.put(from, bytes.clone()).await.map_err(text)?;
    blobs.put(to, vec![9]).await.map_err(text)?;
    equal("a copy", blobs.copy(from, to).await.map_err(text)?, true)?;
    equal("object", blobs.get(to).await.map_err(text)?, Some(bytes))
}

async fn deleting<B: BlobKeeping>(blobs: &B) -> Check {
    let key = |name: &str| format!("conformance/delete/{name}");
    for name in ["a", "b", "c"] {
        blobs.put(&key(name), vec![1]).await.map_err(text)?;
    }
    blobs.delete(&[key("a"), key("none"), key("c")]).await.map_err(text)?;
    let left = blobs.list("conformance/delete/", "", 10).await.map_err(text)?;
    let left: Vec<_> = left.objects.into_iter().map(|object| object.key).collect();
    equal("what is left", left, vec![key("b")])
}
