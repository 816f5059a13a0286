//! What a shard must still take, and what it must refuse before anybody comes to rely on it.

use std::sync::LazyLock;

use serde_json::json;
use swarm_domain::limits::PAYLOAD_INLINE_BYTES_MAX;
use swarm_domain::ports::{SQL_INTEGER_MAX, SQL_PARAMETERS_MAX, SQL_TEXT_BYTES_MAX, Sql, Value};

use crate::case::{
    CaseResult, Check, case, equal, expect_failed, expect_rows, holds, rows, run as run_one, statement,
};

/// Runs the cases of this file.
pub async fn run<S: Sql>(shard: &S) -> Vec<CaseResult> {
    vec![
        case("100 parameters are taken", parameters(shard)).await,
        case("101 parameters are refused", too_many_parameters(shard)).await,
        case("a number beyond 2^53 is refused", large_numbers(shard)).await,
        case("a payload of 64 KiB comes back to the byte", inline_payload(shard)).await,
        case("a text of 1.9 MB is taken", large_text(shard)).await,
        case("a text above 2 MB is refused", too_large_text(shard)).await,
        case("SQL above 100 KB is refused", long_sql(shard)).await,
        case("a batch of 201 statements is taken", long_batch(shard)).await,
    ]
}

/// `SELECT ?1 IS NULL + … AS n`, which uses this many parameters.
fn sum_of(parameters: usize) -> String {
    let terms: Vec<String> = (1..=parameters).map(|number| format!("?{number}")).collect();
    format!("SELECT {} AS n", terms.join(" + "))
}

static AT_LIMIT: LazyLock<String> = LazyLock::new(|| sum_of(SQL_PARAMETERS_MAX));
static BEYOND_LIMIT: LazyLock<String> = LazyLock::new(|| sum_of(SQL_PARAMETERS_MAX + 1));
static LONG_SQL: LazyLock<String> = LazyLock::new(|| format!("SELECT '{}' AS t", "x".repeat(100_000)));

async fn parameters<S: Sql>(shard: &S) -> Check {
    let values = vec![Value::Integer(1); SQL_PARAMETERS_MAX];
    expect_rows(shard, &AT_LIMIT, values, json!([{"n": SQL_PARAMETERS_MAX}])).await
}

async fn too_many_parameters<S: Sql>(shard: &S) -> Check {
    let values = vec![Value::Integer(1); SQL_PARAMETERS_MAX + 1];
    expect_failed(shard, "101 parameters", vec![statement(&BEYOND_LIMIT, values)]).await
}

async fn large_numbers<S: Sql>(shard: &S) -> Check {
    for number in [SQL_INTEGER_MAX + 1, -SQL_INTEGER_MAX - 1, i64::MAX, i64::MIN] {
        let sql = statement("SELECT ?1 AS n", vec![Value::Integer(number)]);
        expect_failed(shard, &number.to_string(), vec![sql]).await?;
    }
    Ok(())
}

const WRITE: &str =
    "INSERT INTO conformance (id, t) VALUES ('large', ?1) ON CONFLICT (id) DO UPDATE SET t = excluded.t";
const READ: &str = "SELECT t FROM conformance WHERE id = 'large'";

async fn keeps<S: Sql>(shard: &S, text: String) -> Check {
    run_one(shard, WRITE, vec![text.as_str().into()]).await?;
    let seen = rows(shard, READ, Vec::new()).await?;
    let seen = seen.first().and_then(|row| row.get("t")).and_then(|text| text.as_str());
    equal("length", seen.map(str::len), Some(text.len()))?;
    holds("some bytes changed", seen == Some(text.as_str()))
}

async fn inline_payload<S: Sql>(shard: &S) -> Check {
    // Characters of two, three and four bytes, so that no boundary of a buffer falls between whole characters only.
    let mut text = "\"é→😀\\u0000 ".repeat(PAYLOAD_INLINE_BYTES_MAX / 17);
    text.push_str(&"x".repeat(PAYLOAD_INLINE_BYTES_MAX - text.len()));
    keeps(shard, text).await
}

async fn large_text<S: Sql>(shard: &S) -> Check {
    keeps(shard, "x".repeat(1_900_000)).await
}

async fn too_large_text<S: Sql>(shard: &S) -> Check {
    keeps(shard, "before".to_owned()).await?;
    let write = statement(WRITE, vec!["x".repeat(SQL_TEXT_BYTES_MAX + 1).into()]);
    expect_failed(shard, "one byte more than 2 MB", vec![write]).await?;
    expect_rows(shard, READ, Vec::new(), json!([{"t": "before"}])).await
}

async fn long_sql<S: Sql>(shard: &S) -> Check {
    expect_failed(shard, "more than 100,000 bytes of SQL", vec![statement(&LONG_SQL, Vec::new())]).await
}

async fn long_batch<S: Sql>(shard: &S) -> Check {
    // As many as `publishBatch` makes of 100 events.
    let statements = (0..201).map(|n| statement("SELECT ?1 AS n", vec![Value::Integer(n)])).collect();
    let outcomes = crate::case::batch(shard, statements).await?;
    equal("the last row", outcomes.last().map(|outcome| outcome.rows.as_str()), Some(r#"[{"n":200}]"#))
}
