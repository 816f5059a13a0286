//! Cases, their results, and small tools to write them with.

use std::fmt::Debug;

use serde::Serialize;
use serde_json::Value as Json;
use swarm_domain::ports::{Outcome, Sql, SqlError, Statement, Value};

/// What came of one case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaseResult {
    /// What the gateway relies on.
    pub name: &'static str,
    /// Whether it holds.
    pub ok: bool,
    /// What was seen instead.
    pub detail: String,
}

/// The end of a case, or what was seen instead.
pub type Check = Result<(), String>;

/// Runs a case under its name.
pub async fn case(name: &'static str, check: impl Future<Output = Check>) -> CaseResult {
    match check.await {
        Ok(()) => CaseResult { name, ok: true, detail: String::new() },
        Err(detail) => CaseResult { name, ok: false, detail },
    }
}

/// Asserts that two values are equal.
pub fn equal<T: PartialEq + Debug>(what: &str, seen: T, expected: T) -> Check {
    if seen == expected { Ok(()) } else { Err(format!("{what}: {}", short(&seen, &expected))) }
}

/// Asserts a condition.
pub fn holds(what: &str, condition: bool) -> Check {
    if condition { Ok(()) } else { Err(what.to_owned()) }
}

/// Two values side by side, cut, because some cases compare megabytes.
fn short<T: Debug>(seen: &T, expected: &T) -> String {
    let cut = |value: &T| format!("{value:?}").chars().take(200).collect::<String>();
    format!("saw {}, expected {}", cut(seen), cut(expected))
}

/// A statement.
pub fn statement(sql: &'static str, values: Vec<Value>) -> Statement {
    Statement::new(sql, values)
}

/// Runs a batch that must succeed.
pub async fn batch<S: Sql>(shard: &S, statements: Vec<Statement>) -> Result<Vec<Outcome>, String> {
    let count = statements.len();
    let outcomes = shard.batch(statements).await.map_err(|e| e.to_string())?;
    equal("answers", outcomes.len(), count)?;
    Ok(outcomes)
}

/// Runs one statement that must succeed.
pub async fn run<S: Sql>(shard: &S, sql: &'static str, values: Vec<Value>) -> Result<Outcome, String> {
    let outcomes = batch(shard, vec![statement(sql, values)]).await?;
    outcomes.into_iter().next().ok_or_else(|| "no answer".to_owned())
}

/// Rows of one statement.
pub async fn rows<S: Sql>(shard: &S, sql: &'static str, values: Vec<Value>) -> Result<Vec<Json>, String> {
    run(shard, sql, values).await?.decode().map_err(|e| e.to_string())
}

/// Asserts the rows of one statement.
pub async fn expect_rows<S: Sql>(shard: &S, sql: &'static str, values: Vec<Value>, expected: Json) -> Check {
    equal(sql, Json::Array(rows(shard, sql, values).await?), expected)
}

/// Asserts that a batch is refused for good.
pub async fn expect_failed<S: Sql>(shard: &S, what: &str, statements: Vec<Statement>) -> Check {
    match shard.batch(statements).await {
        Err(SqlError::Failed(_)) => Ok(()),
        other => Err(format!("{what}: {}", refusal(&other, "Failed"))),
    }
}

/// Asserts that a constraint refuses a batch.
pub async fn expect_constraint<S: Sql>(shard: &S, what: &str, statements: Vec<Statement>) -> Check {
    match shard.batch(statements).await {
        Err(SqlError::Constraint(_)) => Ok(()),
        other => Err(format!("{what}: {}", refusal(&other, "Constraint"))),
    }
}

fn refusal(answer: &Result<Vec<Outcome>, SqlError>, expected: &str) -> String {
    let seen: String = format!("{answer:?}").chars().take(300).collect();
    format!("saw {seen}, expected {expected}")
}
