//! Text that must come back to the byte, whatever is in it, and times that sort as text.

use serde_json::{Value as Json, json};
use swarm_domain::ports::Sql;
use swarm_domain::time::Timestamp;

use crate::case::{CaseResult, Check, case, equal, expect_rows, rows, run as run_one};

/// Runs the cases of this file.
pub async fn run<S: Sql>(shard: &S) -> Vec<CaseResult> {
    vec![
        case("emoji with joiners come back to the byte", survives(shard, "👩‍👩‍👧‍👦🏳️‍🌈 \u{1F1E9}\u{1F1EA}")).await,
        case("composed and decomposed letters stay distinct", normal_forms(shard)).await,
        case("an escaped U+0000 stays an escape", survives(shard, r#"{"a":"\u0000"}"#)).await,
        case("lone surrogates stay escapes", survives(shard, r#"["\ud800","\udc00\ud800"]"#)).await,
        case("quotes, control characters and line separators survive", survives(shard, ODD)).await,
        case("an empty text is not NULL", survives(shard, "")).await,
        case("big numbers in JSON text keep every digit", survives(shard, BIG)).await,
        case("duplicate keys and white space in JSON text survive", survives(shard, SPACED)).await,
        case("->> unescapes what a JSON parameter had to escape", unescaped(shard)).await,
        case("moments as text sort by time", times(shard)).await,
        case("moments compare with SQLite's own datetime()", own_datetime(shard)).await,
    ]
}

const ODD: &str = "\" ' \\ \t \r\n \u{1} \u{7f} \u{2028} \u{feff} \u{fffd} ?1 -- ; /* \u{10FFFF}";
const BIG: &str = r#"{"n":12345678901234567890123456789,"one":1.0,"e":1E400,"zero":-0}"#;
const SPACED: &str = "{ \"b\" : 1,\n\t\"a\": [ ] , \"b\":2 }";

/// Whether a text comes back from a bare parameter, from a column, and out of JSON.
async fn survives<S: Sql>(shard: &S, text: &str) -> Check {
    let row = json!([{"t": text}]);
    expect_rows(shard, "SELECT ?1 AS t", vec![text.into()], row.clone()).await?;
    let write =
        "INSERT INTO conformance (id, t) VALUES ('text', ?1) ON CONFLICT (id) DO UPDATE SET t = excluded.t";
    run_one(shard, write, vec![text.into()]).await?;
    expect_rows(shard, "SELECT t FROM conformance WHERE id = 'text'", Vec::new(), row.clone()).await?;
    let found =
        rows(shard, "SELECT 1 AS n FROM conformance WHERE id = 'text' AND t = ?1", vec![text.into()]).await?;
    equal("found by its text", found.len(), 1)?;
    let wrapped = json!([{ "t": text }]).to_string();
    expect_rows(shard, "SELECT value ->> 't' AS t FROM json_each(?1)", vec![wrapped.into()], row).await
}

async fn normal_forms<S: Sql>(shard: &S) -> Check {
    let (composed, decomposed) = ("\u{e9}", "e\u{301}");
    survives(shard, composed).await?;
    survives(shard, decomposed).await?;
    let sql = "SELECT ?1 = ?2 AS equal, length(?1) AS one, length(?2) AS two";
    let row = json!([{"equal": 0, "one": 1, "two": 2}]);
    expect_rows(shard, sql, vec![composed.into(), decomposed.into()], row).await
}

async fn unescaped<S: Sql>(shard: &S) -> Check {
    let escaped = r#"[{"t":"\u00e9\ud83d\ude00\n\/"}]"#;
    let row = json!([{"t": "\u{e9}\u{1F600}\n/"}]);
    expect_rows(shard, "SELECT value ->> 't' AS t FROM json_each(?1)", vec![escaped.into()], row).await
}

async fn times<S: Sql>(shard: &S) -> Check {
    let moments =
        [-1_i64, 0, 999, 1_000, 1_767_225_599_999, 1_767_225_600_000, i64::MAX].map(Timestamp::from_unix_ms);
    for pair in moments.windows(2) {
        let values = pair.iter().map(|moment| (*moment).into()).collect();
        expect_rows(shard, "SELECT ?1 < ?2 AS earlier", values, json!([{"earlier": 1}])).await?;
    }
    let sql = "SELECT max(value) AS latest FROM json_each(?1)";
    let all = Json::from(moments.map(|moment| moment.to_string()).to_vec()).to_string();
    expect_rows(shard, sql, vec![all.into()], json!([{"latest": "9999-12-31 23:59:59.999"}])).await
}

async fn own_datetime<S: Sql>(shard: &S) -> Check {
    let sql = "SELECT datetime(?1) AS seconds, datetime(?1) <= ?1 AS at_or_before, ?1 < datetime(?1, '+1 second') AS after";
    let moment = Timestamp::from_unix_ms(1_767_225_600_042);
    let row = json!([{"seconds": "2026-01-01 00:00:00", "at_or_before": 1, "after": 1}]);
    expect_rows(shard, sql, vec![moment.into()], row).await
}
