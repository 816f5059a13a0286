//! The query plan of every hot statement, kept in `plans.snap`, so that a lost index shows in the diff. Run with `BLESS=1`
//! to rewrite the file.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::collections::HashMap;
use std::fmt::Write as _;

use common::run;
use swarm_domain::ports::Value;
use swarm_domain::{accept, claim, lease, settle};
use swarm_native::SqliteShard;

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans.snap");

fn statements() -> [(&'static str, &'static str); 13] {
    [
        ("accept::INSERT_EVENT", accept::INSERT_EVENT),
        ("accept::INSERT_DISPATCHES", accept::INSERT_DISPATCHES),
        ("accept::READ_RECORDED", accept::READ_RECORDED),
        ("claim::CLAIM_DUE", &claim::CLAIM_DUE),
        ("claim::CLAIM_NAMED", &claim::CLAIM_NAMED),
        ("claim::READ_CLAIMED", claim::READ_CLAIMED),
        ("settle::MARK_ENQUEUED", &settle::MARK_ENQUEUED),
        ("settle::MARK_FAILED", &settle::MARK_FAILED),
        ("lease::TAKE_LEASES", &lease::TAKE_LEASES),
        ("lease::READ_LEASES", lease::READ_LEASES),
        ("lease::MARK_DELIVERED", &lease::MARK_DELIVERED),
        ("lease::RELEASE_LEASES", lease::RELEASE_LEASES),
        ("lease::MARK_DEAD_LETTERED", &lease::MARK_DEAD_LETTERED),
    ]
}

/// The steps of a plan, indented by their depth.
fn plan(shard: &SqliteShard, sql: &str) -> Vec<String> {
    let parameters = (1..=20).take_while(|number| sql.contains(&format!("?{number}"))).count();
    let explain = format!("EXPLAIN QUERY PLAN {sql}").leak();
    let mut depths: HashMap<i64, usize> = HashMap::new();
    let rows = run(shard, explain, vec![Value::Null; parameters]);
    let steps = rows.iter().map(|row| {
        let depth = depths.get(&row["parent"].as_i64().unwrap()).map_or(1, |depth| depth + 1);
        depths.insert(row["id"].as_i64().unwrap(), depth);
        format!("{}{}", "  ".repeat(depth), row["detail"].as_str().unwrap())
    });
    steps.collect()
}

#[test]
fn plans_are_those_of_the_snapshot() {
    let shard = SqliteShard::migrated().unwrap();
    let mut plans = String::new();
    for (name, sql) in statements() {
        let steps = plan(&shard, sql);
        let steps = if steps.is_empty() { "  (looks nothing up)".to_owned() } else { steps.join("\n") };
        writeln!(plans, "{name}\n{steps}\n").unwrap();
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(SNAPSHOT, &plans).unwrap();
    }
    let kept = std::fs::read_to_string(SNAPSHOT).unwrap_or_default();
    assert!(plans == kept, "plans changed; look at them, then run with BLESS=1:\n{plans}");
}

#[test]
fn no_hot_statement_scans_a_table_or_sorts_rows() {
    let shard = SqliteShard::migrated().unwrap();
    for (name, sql) in statements() {
        for step in plan(&shard, sql) {
            let step = step.trim();
            let unfolds_a_parameter = ["t", "k", "json_each"]
                .iter()
                .any(|table| step == format!("SCAN {table} VIRTUAL TABLE INDEX 1:"));
            assert!(!step.starts_with("SCAN") || unfolds_a_parameter, "{name}: {step}");
            assert!(!step.contains("AUTOMATIC") && !step.contains("TEMP B-TREE"), "{name}: {step}");
        }
    }
}
