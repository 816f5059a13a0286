//! A ledger shard on D1.

use js_sys::Array;
use swarm_domain::ports::{
    Outcome, SQL_INTEGER_MAX, SQL_PARAMETERS_MAX, SQL_TEXT_BYTES_MAX, Sql, SqlError, Statement, Value,
};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use worker_sys::{D1Database, D1PreparedStatement};

use crate::js;

/// One D1 database.
#[derive(Clone, Debug)]
pub struct D1Shard(D1Database);

impl D1Shard {
    /// The shard of a binding.
    pub fn new(database: D1Database) -> Self {
        Self(database)
    }

    fn prepare(&self, statement: &Statement) -> Result<D1PreparedStatement, SqlError> {
        if statement.values.len() > SQL_PARAMETERS_MAX {
            return Err(SqlError::Failed(format!("more than {SQL_PARAMETERS_MAX} parameters")));
        }
        let values = Array::new();
        for value in &statement.values {
            values.push(&bound(value)?);
        }
        self.0.prepare(statement.sql).and_then(|prepared| prepared.bind(values)).map_err(|e| thrown(&e))
    }
}

impl Sql for D1Shard {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Outcome>, SqlError> {
        if statements.is_empty() {
            return Ok(Vec::new());
        }
        let prepared = Array::new();
        for statement in &statements {
            prepared.push(self.prepare(statement)?.as_ref());
        }
        let answer = self.0.batch(prepared).map_err(|e| thrown(&e))?;
        let results = JsFuture::from(answer).await.map_err(|e| thrown(&e))?;
        Array::from(&results).iter().map(|result| outcome(&result)).collect()
    }
}

/// Refuses what D1 would not keep as it is: numbers cross as doubles, and the local runtime takes rows that production does not.
fn bound(value: &Value) -> Result<JsValue, SqlError> {
    match value {
        Value::Null => Ok(JsValue::NULL),
        Value::Text(text) if text.len() > SQL_TEXT_BYTES_MAX => Err(SqlError::Failed(format!(
            "a text of {} bytes; the limit is {SQL_TEXT_BYTES_MAX}",
            text.len()
        ))),
        Value::Text(text) => Ok(JsValue::from_str(text)),
        Value::Integer(number) if number.unsigned_abs() <= SQL_INTEGER_MAX.unsigned_abs() => {
            Ok(JsValue::from_f64(*number as f64))
        }
        Value::Integer(number) => Err(SqlError::Failed(format!("{number} is beyond what D1 keeps exactly"))),
    }
}

/// Rows cross as one JSON text: a single crossing however many rows and columns there are.
fn outcome(result: &JsValue) -> Result<Outcome, SqlError> {
    let changes = js::property(&js::property(result, "meta"), "changes").as_f64().unwrap_or(0.0) as u64;
    let rows = match js::property(result, "results").dyn_ref::<Array>() {
        Some(rows) if rows.length() > 0 => {
            let text = js_sys::JSON::stringify(rows).map_err(|e| thrown(&e))?;
            text.as_string().unwrap_or_default()
        }
        _ => String::new(),
    };
    Ok(Outcome { rows, changes })
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
