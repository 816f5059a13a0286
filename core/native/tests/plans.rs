//! The query plan of every hot statement, kept in `plans.snap`, so that a lost index shows in the diff. Run with `BLESS=1`
//! to rewrite the file.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::collections::HashMap;
use std::fmt::Write as _;

use common::run;
use swarm_domain::ports::Value;
use swarm_domain::{
    accept, alert, archive, claim, events, incident, lane, lease, rejected, replay, retention, settle, sweep,
};
use swarm_native::SqliteShard;

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans.snap");

fn statements() -> Vec<(&'static str, &'static str)> {
    vec![
        ("accept::INSERT_EVENT", accept::INSERT_EVENT),
        ("accept::INSERT_DISPATCHES", accept::INSERT_DISPATCHES),
        ("accept::READ_RECORDED", accept::READ_RECORDED),
        ("claim::CLAIM_NAMED", &claim::CLAIM_NAMED),
        ("claim::READ_NAMED", claim::READ_NAMED),
        ("settle::MARK_ENQUEUED", &settle::MARK_ENQUEUED),
        ("settle::MARK_FAILED", &settle::MARK_FAILED),
        ("lane::TAKE", lane::TAKE),
        ("lane::RENEW", lane::RENEW),
        ("lane::RELEASE", lane::RELEASE),
        ("sweep::FIND_TOPICS", sweep::FIND_TOPICS),
        ("sweep::READ_DUE", sweep::READ_DUE),
        ("sweep::MARK_SENT", &sweep::MARK_SENT),
        ("sweep::MARK_FAILED", &sweep::MARK_FAILED),
        ("sweep::ABANDON", &sweep::ABANDON),
        ("sweep::MARK_ARCHIVED", &sweep::MARK_ARCHIVED),
        ("lease::TAKE_LEASES", &lease::TAKE_LEASES),
        ("lease::READ_LEASES", lease::READ_LEASES),
        ("lease::MARK_DELIVERED", &lease::MARK_DELIVERED),
        ("lease::RELEASE_LEASES", &lease::RELEASE_LEASES),
        ("lease::MARK_DEAD_LETTERED", &lease::MARK_DEAD_LETTERED),
        ("lease::RESOLVE_INCIDENTS", &lease::RESOLVE_INCIDENTS),
        ("lease::LET_GO", lease::LET_GO),
        ("archive::LAY_TO_REST", &archive::LAY_TO_REST),
        ("archive::READ_LAID", archive::READ_LAID),
        ("incident::REPORT", &incident::REPORT),
        ("incident::REPORT_FOREIGN", incident::REPORT_FOREIGN),
    ]
}

/// What operators do: rare, but over tables that grow.
fn statements_of_operators() -> Vec<(&'static str, &'static str)> {
    vec![
        ("incident::FIND", &incident::FIND),
        ("incident::VIEW", &incident::VIEW),
        ("incident::READ_LOG", incident::READ_LOG),
        ("incident::LIST_BY_STATUS", &incident::LIST_BY_STATUS),
        ("incident::LIST_BY_TENANT", &incident::LIST_BY_TENANT),
        ("incident::TRIAGE", &incident::TRIAGE),
        ("incident::IGNORE", &incident::IGNORE),
        ("incident::LOG_DECISION", incident::LOG_DECISION),
        ("incident::READ_DECIDED", &incident::READ_DECIDED),
        ("replay::MOVE_ONE", &replay::MOVE_ONE),
        ("replay::RETRY_ONE", &replay::RETRY_ONE),
        ("replay::LOG_ONE", &replay::LOG_ONE),
        ("replay::READ_ONE", &replay::READ_ONE),
        ("replay::COUNT_BY_STATUS", &replay::COUNT_BY_STATUS),
        ("replay::COUNT_BY_TENANT", &replay::COUNT_BY_TENANT),
        ("replay::COUNT_EVENTS", &replay::COUNT_EVENTS),
        ("replay::INSERT_JOB", replay::INSERT_JOB),
        ("replay::LOG_JOB", replay::LOG_JOB),
        ("replay::READ_JOB", &replay::READ_JOB),
        ("replay::LIST_JOBS", &replay::LIST_JOBS),
        ("replay::RUNNING_JOBS", replay::RUNNING_JOBS),
        ("replay::READ_PROGRESS_OF", replay::READ_PROGRESS_OF),
        ("replay::CANCEL", replay::CANCEL),
        ("replay::LOG_CANCEL", replay::LOG_CANCEL),
        ("replay::READ_CANCELLED", &replay::READ_CANCELLED),
        ("replay::TAKE_RUNNER", replay::TAKE_RUNNER),
        ("replay::RENEW_RUNNER", replay::RENEW_RUNNER),
        ("replay::RELEASE_RUNNER", replay::RELEASE_RUNNER),
        ("replay::COMPLETE", replay::COMPLETE),
        ("replay::OPEN_PROGRESS", replay::OPEN_PROGRESS),
        ("replay::READ_PROGRESS", replay::READ_PROGRESS),
        ("replay::NEXT_INCIDENTS_BY_STATUS", &replay::NEXT_INCIDENTS_BY_STATUS),
        ("replay::NEXT_INCIDENTS_BY_TENANT", &replay::NEXT_INCIDENTS_BY_TENANT),
        ("replay::NEXT_EVENTS", &replay::NEXT_EVENTS),
        ("replay::INSERT_MISSING", &replay::INSERT_MISSING),
        ("replay::MOVE_INCIDENTS", &replay::MOVE_INCIDENTS),
        ("replay::MOVE_EVENTS", &replay::MOVE_EVENTS),
        ("replay::RETRY_INCIDENTS", &replay::RETRY_INCIDENTS),
        ("replay::LOG_MOVED", &replay::LOG_MOVED),
        ("replay::TAKE_STEP", &replay::TAKE_STEP),
        ("events::LIST", &events::LIST),
        ("events::NEXT", &events::NEXT),
        ("events::LIST_OF_TENANT", &events::LIST_OF_TENANT),
        ("events::NEXT_OF_TENANT", &events::NEXT_OF_TENANT),
        ("events::FIND_BY_NAME", &events::FIND_BY_NAME),
        ("events::FIND_BY_ID", &events::FIND_BY_ID),
        ("events::FIND_SEQ", events::FIND_SEQ),
        ("events::TOP", events::TOP),
        ("events::FOLLOW", &events::FOLLOW),
        ("events::READ_EVENT", events::READ_EVENT),
        ("events::READ_DISPATCHES", events::READ_DISPATCHES),
        ("events::READ_PAYLOAD", events::READ_PAYLOAD),
        ("rejected::COUNT", rejected::COUNT),
        ("rejected::LOG_REVERIFY", rejected::LOG_REVERIFY),
    ]
}

/// What alerting does every minute, and retention and its undoing with very many rows.
fn statements_of_keeping() -> Vec<(&'static str, &'static str)> {
    vec![
        ("alert::DUE_INCIDENTS", alert::DUE_INCIDENTS),
        ("alert::OVERDUE", alert::OVERDUE),
        ("alert::INSERT_ALERTS", alert::INSERT_ALERTS),
        ("alert::INSERT_MARKS", alert::INSERT_MARKS),
        ("alert::MARK_TOLD", &alert::MARK_TOLD),
        ("alert::CLEAR_MARKS", alert::CLEAR_MARKS),
        ("alert::DUE_ALERTS", alert::DUE_ALERTS),
        ("alert::ALERT_SENT", alert::ALERT_SENT),
        ("alert::ALERT_FAILED", alert::ALERT_FAILED),
        ("rejected::RECORD", rejected::RECORD),
        ("rejected::FORGET_COUNTS", rejected::FORGET_COUNTS),
        ("retention::READ_BOOKMARK", retention::READ_BOOKMARK),
        ("retention::WRITE_BOOKMARK", retention::WRITE_BOOKMARK),
        ("retention::FIND_TENANTS", retention::FIND_TENANTS),
        ("retention::SCAN", retention::SCAN),
        ("retention::READ_EVENTS", retention::READ_EVENTS),
        ("retention::READ_DISPATCHES", retention::READ_DISPATCHES),
        ("retention::READ_INCIDENTS", retention::READ_INCIDENTS),
        ("retention::DELETE_INCIDENTS", &retention::DELETE_INCIDENTS),
        ("retention::DELETE_DISPATCHES", &retention::DELETE_DISPATCHES),
        ("retention::DELETE_EVENTS", &retention::DELETE_EVENTS),
        ("retention::COUNT_LEFT", retention::COUNT_LEFT),
        ("retention::READ_REFERENCED", retention::READ_REFERENCED),
        ("retention::READ_PRESENT", retention::READ_PRESENT),
        ("retention::INSERT_EVENTS", retention::INSERT_EVENTS),
        ("retention::INSERT_DISPATCHES", retention::INSERT_DISPATCHES),
        ("retention::INSERT_INCIDENTS", retention::INSERT_INCIDENTS),
        ("retention::REPEAT", &retention::REPEAT),
        ("retention::INSERT_REPEATED", &retention::INSERT_REPEATED),
        ("retention::RETRY_REPEATED", &retention::RETRY_REPEATED),
        ("retention::COUNT_RESTORED", retention::COUNT_RESTORED),
    ]
}

fn all_statements() -> Vec<(&'static str, &'static str)> {
    [statements(), statements_of_operators(), statements_of_keeping()].concat()
}

/// The steps of a plan, indented by their depth.
fn plan(shard: &SqliteShard, sql: &str) -> Vec<String> {
    let parameters = (1..=20).filter(|number| sql.contains(&format!("?{number}"))).max().unwrap_or(0);
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
    for (name, sql) in all_statements() {
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
    for (name, sql) in all_statements() {
        for step in plan(&shard, sql) {
            let step = step.trim();
            let unfolds_a_parameter = ["t", "k", "json_each"]
                .iter()
                .any(|table| step.starts_with(&format!("SCAN {table} VIRTUAL TABLE INDEX ")));
            // What a statement has made itself is as small as its bounds say.
            let reads_its_own = [
                "SCAN CONSTANT ROW",
                "SCAN topics",
                "SCAN tenants",
                "SCAN halves",
                "SCAN sized",
                "SCAN (subquery-",
            ]
            .iter()
            .any(|own| step.starts_with(own));
            assert!(!step.starts_with("SCAN") || unfolds_a_parameter || reads_its_own, "{name}: {step}");
            // Adding up takes one row of memory for each sum.
            let adds_up = name == "rejected::COUNT" && step.ends_with("FOR GROUP BY");
            assert!(
                !step.contains("AUTOMATIC") && (adds_up || !step.contains("TEMP B-TREE")),
                "{name}: {step}"
            );
        }
    }
}
