//! The suite on SQLite and memory.

#![allow(clippy::unwrap_used, clippy::panic)]

use swarm_conformance::{CaseResult, run_blobs, run_queues, run_sql};
use swarm_domain::topic::Topic;
use swarm_native::{MemoryBlobs, MemoryQueues, SqliteShard, block_on};

/// Prints every case, and fails if one does not hold.
fn report(results: Vec<CaseResult>) {
    for case in &results {
        println!("{} {} {}", if case.ok { "ok    " } else { "FAILED" }, case.name, case.detail);
    }
    let failed: Vec<_> = results.iter().filter(|case| !case.ok).map(|case| case.name).collect();
    assert!(failed.is_empty(), "cases that do not hold: {failed:#?}");
}

#[test]
fn sql_on_sqlite_in_memory() {
    report(block_on(run_sql(&SqliteShard::migrated().unwrap())));
}

#[test]
fn sql_on_a_sqlite_file_that_is_opened_again() {
    let folder = std::env::temp_dir().join(format!("swarm-conformance-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for _ in 0..2 {
        let shard = SqliteShard::open(&folder.join("ledger.sqlite")).unwrap();
        shard.migrate().unwrap();
        report(block_on(run_sql(&shard)));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn queues_in_memory() {
    let topic = Topic::try_from("conformance".to_owned()).unwrap();
    report(block_on(run_queues(&MemoryQueues::new([topic]))));
}

#[test]
fn blobs_in_memory() {
    report(block_on(run_blobs(&MemoryBlobs::new())));
}
