//! A ledger shard on D1.

use js_sys::Promise;
use serde_json::value::RawValue;
use swarm_domain::ports::{
    Outcome, SQL_INTEGER_MAX, SQL_PARAMETERS_MAX, SQL_TEXT_BYTES_MAX, Sql, SqlError, Statement, Value,
};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::JsFuture;
use worker_sys::D1Database;

use crate::js;

#[wasm_bindgen(module = "/src/d1.mjs")]
extern "C" {
    #[wasm_bindgen(js_name = batch)]
    fn run_batch(database: &D1Database, texts: &str, shape: &str) -> Promise;
}

/// One D1 database.
#[derive(Clone, Debug)]
pub struct D1Shard(D1Database);

impl D1Shard {
    /// The shard of a binding.
    pub fn new(database: D1Database) -> Self {
        Self(database)
    }
}

impl Sql for D1Shard {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Outcome>, SqlError> {
        batch(&statements, |texts, shape| run_batch(&self.0, texts, shape)).await
    }
}

/// Hands a batch to a function of JavaScript that takes and answers what `d1.mjs` describes.
pub(crate) async fn batch(
    statements: &[Statement],
    run: impl FnOnce(&str, &str) -> Promise,
) -> Result<Vec<Outcome>, SqlError> {
    if statements.is_empty() {
        return Ok(Vec::new());
    }
    let call = Call::of(statements)?;
    let answer = JsFuture::from(run(&call.texts, &call.shape)).await;
    outcomes(&answer.map_err(|e| thrown(&e))?.as_string().unwrap_or_default())
}

/// Statements on their way to JavaScript; `d1.mjs` says how they are written.
#[derive(Default)]
struct Call {
    texts: String,
    shape: String,
}

impl Call {
    /// Refuses what D1 would not keep as it is: numbers cross as doubles, and the local runtime takes rows that production
    /// does not.
    fn of(statements: &[Statement]) -> Result<Self, SqlError> {
        let mut call = Self::default();
        for statement in statements {
            if statement.values.len() > SQL_PARAMETERS_MAX {
                return Err(SqlError::Failed(format!("more than {SQL_PARAMETERS_MAX} parameters")));
            }
            call.shape.push_str(if call.shape.is_empty() { "[[" } else { "],[" });
            call.push_text(statement.sql);
            for value in &statement.values {
                call.shape.push(',');
                call.push_value(value)?;
            }
        }
        call.shape.push_str("]]");
        Ok(call)
    }

    fn push_value(&mut self, value: &Value) -> Result<(), SqlError> {
        match value {
            Value::Null => self.shape.push_str("null"),
            Value::Text(text) if text.len() > SQL_TEXT_BYTES_MAX => {
                let problem = format!("a text of {} bytes; the limit is {SQL_TEXT_BYTES_MAX}", text.len());
                return Err(SqlError::Failed(problem));
            }
            Value::Text(text) => self.push_text(text),
            Value::Integer(number) if number.unsigned_abs() <= SQL_INTEGER_MAX.unsigned_abs() => {
                self.shape.push_str(&format!("[{number}]"));
            }
            Value::Integer(number) => {
                return Err(SqlError::Failed(format!("{number} is beyond what D1 keeps exactly")));
            }
        }
        Ok(())
    }

    /// JavaScript counts in units of UTF-16.
    fn push_text(&mut self, text: &str) {
        self.shape.push_str(&text.encode_utf16().count().to_string());
        self.texts.push_str(text);
    }
}

fn outcomes(answer: &str) -> Result<Vec<Outcome>, SqlError> {
    let unexpected = |e| SqlError::Failed(format!("unexpected answer: {e}"));
    let results: Vec<(Option<&RawValue>, u64)> = serde_json::from_str(answer).map_err(unexpected)?;
    let outcome = |(rows, changes): (Option<&RawValue>, u64)| {
        let rows = rows.map(|rows| rows.get().to_owned()).unwrap_or_default();
        Outcome { rows, changes }
    };
    Ok(results.into_iter().map(outcome).collect())
}

fn thrown(error: &JsValue) -> SqlError {
    sort(js::error_message(error))
}

/// Parts of messages that say that the statement itself is wrong.
const FAILURES: [&str; 4] = ["D1_TYPE_ERROR", "syntax error", "no such ", "parameter bindings"];

/// Sorts an error by its text, the only thing that D1 gives. What is not known counts as "no answer", because then the
/// batch is treated as perhaps committed, which is always safe.
fn sort(message: String) -> SqlError {
    let says = |part: &str| message.contains(part);
    if says("SQLITE_CONSTRAINT") || says("constraint failed") {
        SqlError::Constraint(message)
    } else if says("SQLITE_") && !says("SQLITE_BUSY") || FAILURES.iter().any(|part| says(part)) {
        SqlError::Failed(message)
    } else {
        SqlError::Unavailable(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_apart_by_utf16_units() {
        let values = vec![Value::Null, (-7).into(), "é\u{1F600}".into(), "".into()];
        let call = Call::of(&[Statement::new("a ?", values), Statement::new("b", vec![])]).unwrap();
        assert_eq!(call.texts, "a ?é\u{1F600}b");
        assert_eq!(call.shape, "[[3,null,[-7],3,0],[1]]");
    }

    #[test]
    fn rows_keep_their_text() {
        let read = outcomes(r#"[[null,1],[[{"n": 1.50}],0]]"#).unwrap();
        assert_eq!(
            read,
            [
                Outcome { rows: String::new(), changes: 1 },
                Outcome { rows: r#"[{"n": 1.50}]"#.into(), changes: 0 }
            ]
        );
        assert!(matches!(outcomes("{}"), Err(SqlError::Failed(_))));
    }

    #[test]
    fn errors_are_sorted_by_what_they_leave_behind() {
        for (message, expected) in [
            ("D1_ERROR: UNIQUE constraint failed: t.id: SQLITE_CONSTRAINT", "constraint"),
            ("D1_ERROR: CHECK constraint failed: status: SQLITE_CONSTRAINT_CHECK", "constraint"),
            ("D1_ERROR: no such table: event_ledger: SQLITE_ERROR", "failed"),
            ("D1_ERROR: too many SQL variables at offset 12: SQLITE_ERROR", "failed"),
            ("D1_TYPE_ERROR: Type 'undefined' not supported for value 'undefined'", "failed"),
            ("D1_ERROR: Wrong number of parameter bindings for SQL query.", "failed"),
            ("D1_ERROR: database is locked: SQLITE_BUSY", "unavailable"),
            ("D1_ERROR: Network connection lost.", "unavailable"),
            ("D1 DB is overloaded. Requests queued for too long.", "unavailable"),
            ("something nobody has seen before", "unavailable"),
        ] {
            let sorted = match sort(message.to_owned()) {
                SqlError::Constraint(_) => "constraint",
                SqlError::Failed(_) => "failed",
                SqlError::Unavailable(_) => "unavailable",
            };
            assert_eq!(sorted, expected, "{message}");
        }
    }
}
