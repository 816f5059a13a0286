//! Batches, counts, constraints and the pieces of SQL that the gateway's statements are made of.

use serde_json::json;
use swarm_domain::ports::{Sql, Value};

use crate::case::{
    CaseResult, Check, batch, case, equal, expect_constraint, expect_failed, expect_rows, run as run_one,
    statement,
};

/// Runs the cases of this file.
pub async fn run<S: Sql>(shard: &S) -> Vec<CaseResult> {
    vec![
        case("scratch tables can be made", make_tables(shard)).await,
        case("a batch answers each statement in order", answers_in_order(shard)).await,
        case("an empty batch answers nothing", empty_batch(shard)).await,
        case("a failing statement undoes all before it in the batch", undoes(shard)).await,
        case("a later statement of a batch sees what earlier ones wrote", sees_earlier(shard)).await,
        case("a conflict that does nothing counts 0 changes", conflicts_count_nothing(shard)).await,
        case("RETURNING gives the rows that were written", returning(shard)).await,
        case("an update that finds nothing counts 0 changes", updates_count(shard)).await,
        case("UPDATE FROM json_each counts the rows that it changed", update_from(shard)).await,
        case("row values are looked up in what json_each unfolds", row_values(shard)).await,
        case("a violated CHECK is a Constraint error", check_violation(shard)).await,
        case("a violated UNIQUE or FOREIGN KEY is a Constraint error", key_violation(shard)).await,
        case("STRICT columns refuse other types", strict(shard)).await,
        case("bad SQL is a Failed error", bad_sql(shard)).await,
        case("NULL is bound and read as null", nulls(shard)).await,
        case("a bound number keeps its integer type in a column", numbers(shard)).await,
        case("a bound number may be a LIMIT", limit(shard)).await,
    ]
}

async fn make_tables<S: Sql>(shard: &S) -> Check {
    let tables = [
        "DROP TABLE IF EXISTS conformance_child",
        "DROP TABLE IF EXISTS conformance",
        "CREATE TABLE conformance (
           id TEXT PRIMARY KEY, n INTEGER, t TEXT, CHECK (n IS NULL OR n >= 0)
         ) STRICT, WITHOUT ROWID",
        "CREATE TABLE conformance_child (parent TEXT NOT NULL REFERENCES conformance (id)) STRICT",
    ];
    batch(shard, tables.into_iter().map(|sql| statement(sql, Vec::new())).collect()).await.map(|_| ())
}

const INSERT: &str = "INSERT INTO conformance (id, n) VALUES (?1, ?2)";
const UPSERT: &str = "INSERT INTO conformance (id, n) VALUES (?1, ?2) ON CONFLICT (id) DO NOTHING";
const COUNT: &str = "SELECT count(*) AS n FROM conformance";

async fn clear<S: Sql>(shard: &S, ids: &[&str]) -> Check {
    let mut statements = vec![statement("DELETE FROM conformance", Vec::new())];
    for (n, id) in (1..).zip(ids) {
        statements.push(statement(INSERT, vec![(*id).into(), Value::Integer(n)]));
    }
    batch(shard, statements).await.map(|_| ())
}

async fn answers_in_order<S: Sql>(shard: &S) -> Check {
    clear(shard, &["a", "b"]).await?;
    let outcomes = batch(
        shard,
        vec![
            statement("SELECT id FROM conformance ORDER BY id", Vec::new()),
            statement("DELETE FROM conformance", Vec::new()),
            statement("SELECT id FROM conformance", Vec::new()),
        ],
    )
    .await?;
    let seen: Vec<_> = outcomes.iter().map(|outcome| (outcome.rows.as_str(), outcome.changes)).collect();
    equal("rows and changes", seen, vec![(r#"[{"id":"a"},{"id":"b"}]"#, 0), ("", 2), ("", 0)])
}

async fn empty_batch<S: Sql>(shard: &S) -> Check {
    batch(shard, Vec::new()).await.map(|_| ())
}

async fn undoes<S: Sql>(shard: &S) -> Check {
    clear(shard, &["a"]).await?;
    let statements = vec![
        statement(INSERT, vec!["b".into(), Value::Integer(2)]),
        statement("UPDATE conformance SET n = 9 WHERE id = 'a'", Vec::new()),
        statement(INSERT, vec!["a".into(), Value::Integer(1)]),
    ];
    expect_constraint(shard, "a second row 'a'", statements).await?;
    expect_rows(shard, "SELECT id, n FROM conformance", Vec::new(), json!([{"id": "a", "n": 1}])).await
}

async fn sees_earlier<S: Sql>(shard: &S) -> Check {
    clear(shard, &[]).await?;
    let copy =
        "INSERT INTO conformance (id) SELECT 'b' WHERE EXISTS (SELECT 1 FROM conformance WHERE id = 'a')";
    let outcomes =
        batch(shard, vec![statement(INSERT, vec!["a".into(), Value::Null]), statement(copy, Vec::new())])
            .await?;
    equal("changes", outcomes.iter().map(|outcome| outcome.changes).collect::<Vec<_>>(), vec![1, 1])
}

async fn conflicts_count_nothing<S: Sql>(shard: &S) -> Check {
    clear(shard, &["a"]).await?;
    for (id, changes) in [("a", 0), ("b", 1)] {
        let outcome = run_one(shard, UPSERT, vec![id.into(), Value::Integer(7)]).await?;
        equal(id, outcome.changes, changes)?;
    }
    let rows = json!([{"id": "a", "n": 1}, {"id": "b", "n": 7}]);
    expect_rows(shard, "SELECT id, n FROM conformance ORDER BY id", Vec::new(), rows).await
}

async fn returning<S: Sql>(shard: &S) -> Check {
    clear(shard, &["a", "b", "c"]).await?;
    let sql = "UPDATE conformance SET n = n * 10 WHERE n >= ?1 RETURNING id, n";
    let outcome = run_one(shard, sql, vec![Value::Integer(2)]).await?;
    let mut rows: Vec<serde_json::Value> = outcome.decode().map_err(|e| e.to_string())?;
    rows.sort_by_key(ToString::to_string);
    equal("rows", json!(rows), json!([{"id": "b", "n": 20}, {"id": "c", "n": 30}]))?;
    equal("changes", outcome.changes, 2)
}

async fn updates_count<S: Sql>(shard: &S) -> Check {
    clear(shard, &["a", "b"]).await?;
    let sql = "UPDATE conformance SET n = 5 WHERE id = ?1";
    for (id, changes) in [("nobody", 0), ("a", 1), ("a", 1)] {
        equal(id, run_one(shard, sql, vec![id.into()]).await?.changes, changes)?;
    }
    Ok(())
}

async fn update_from<S: Sql>(shard: &S) -> Check {
    clear(shard, &["a", "b", "c"]).await?;
    let sql = "UPDATE conformance SET t = k.value ->> 't' FROM json_each(?1) k
                WHERE conformance.id = k.value ->> 'id' AND n = k.value ->> 'n'";
    let keys = r#"[{"id":"a","n":1,"t":"x"},{"id":"b","n":7},{"id":"c","n":3},{"id":"z","n":1}]"#;
    equal("changes", run_one(shard, sql, vec![keys.into()]).await?.changes, 2)?;
    let rows = json!([{"t": "x"}, {"t": null}, {"t": null}]);
    expect_rows(shard, "SELECT t FROM conformance ORDER BY id", Vec::new(), rows).await
}

async fn row_values<S: Sql>(shard: &S) -> Check {
    clear(shard, &["a", "b", "c"]).await?;
    let sql = "SELECT id FROM conformance
                WHERE (id, n) IN (SELECT value ->> 'id', value ->> 'n' FROM json_each(?1)) ORDER BY id";
    let keys = r#"[{"id":"a","n":1},{"id":"b","n":1},{"id":"c","n":3}]"#;
    expect_rows(shard, sql, vec![keys.into()], json!([{"id": "a"}, {"id": "c"}])).await?;
    let by_place = "SELECT k.value ->> 0 AS first, k.value ->> 1 AS second FROM json_each(?1) k";
    let pair = json!([{"first": "a", "second": "1"}]);
    expect_rows(shard, by_place, vec![r#"[["a","1"]]"#.into()], pair).await
}

async fn check_violation<S: Sql>(shard: &S) -> Check {
    clear(shard, &["a"]).await?;
    let statements = vec![statement("UPDATE conformance SET n = -1", Vec::new())];
    expect_constraint(shard, "a negative n", statements).await
}

async fn key_violation<S: Sql>(shard: &S) -> Check {
    clear(shard, &["a"]).await?;
    let again = statement(INSERT, vec!["a".into(), Value::Null]);
    expect_constraint(shard, "the same key again", vec![again]).await?;
    let orphan = statement("INSERT INTO conformance_child VALUES ('nobody')", Vec::new());
    expect_constraint(shard, "a child without parent", vec![orphan]).await
}

async fn strict<S: Sql>(shard: &S) -> Check {
    clear(shard, &[]).await?;
    let text = statement("INSERT INTO conformance (id, n) VALUES ('a', ?1)", vec!["many".into()]);
    expect_constraint(shard, "text in an INTEGER column", vec![text]).await?;
    let fraction = statement("INSERT INTO conformance (id, n) VALUES ('a', 1.5)", Vec::new());
    expect_constraint(shard, "a fraction in an INTEGER column", vec![fraction]).await?;
    expect_rows(shard, COUNT, Vec::new(), json!([{"n": 0}])).await
}

async fn bad_sql<S: Sql>(shard: &S) -> Check {
    for (what, sql) in [
        ("no SQL", "UPDAT conformance SET n = 1"),
        ("no table", "SELECT * FROM conformance_nothing"),
        ("no column", "SELECT nothing FROM conformance"),
        ("too few values", "SELECT ?1 AS a, ?2 AS b"),
    ] {
        let values = if what == "too few values" { vec![Value::Null] } else { Vec::new() };
        expect_failed(shard, what, vec![statement(sql, values)]).await?;
    }
    let too_many = statement("SELECT ?1 AS a", vec![Value::Null, Value::Null]);
    expect_failed(shard, "too many values", vec![too_many]).await
}

async fn nulls<S: Sql>(shard: &S) -> Check {
    clear(shard, &[]).await?;
    run_one(shard, INSERT, vec!["a".into(), Value::Null]).await?;
    let sql = "SELECT n, t, ?1 AS bound, n IS NULL AS missing FROM conformance WHERE ?1 IS NULL";
    let row = json!([{"n": null, "t": null, "bound": null, "missing": 1}]);
    expect_rows(shard, sql, vec![Value::Null], row).await
}

async fn numbers<S: Sql>(shard: &S) -> Check {
    clear(shard, &[]).await?;
    let largest = swarm_domain::ports::SQL_INTEGER_MAX;
    for (id, number) in [("zero", 0), ("largest", largest)] {
        run_one(shard, INSERT, vec![id.into(), Value::Integer(number)]).await?;
    }
    let sql = "SELECT n, typeof(n) AS type FROM conformance ORDER BY n";
    let rows = json!([{"n": 0, "type": "integer"}, {"n": largest, "type": "integer"}]);
    expect_rows(shard, sql, Vec::new(), rows).await?;
    let bound = json!([{"type": "real", "n": -largest}]);
    expect_rows(shard, "SELECT typeof(?1) AS type, ?1 AS n", vec![Value::Integer(-largest)], bound).await
}

async fn limit<S: Sql>(shard: &S) -> Check {
    clear(shard, &["a", "b", "c"]).await?;
    let sql = "SELECT id FROM conformance ORDER BY id LIMIT ?1";
    expect_rows(shard, sql, vec![Value::Integer(2)], json!([{"id": "a"}, {"id": "b"}])).await
}
