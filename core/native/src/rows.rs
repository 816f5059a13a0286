//! Rows as D1 answers them: a JSON array of objects, whose numbers are JavaScript's.

use rusqlite::types::ValueRef;
use rusqlite::{Row, Rows};
use swarm_domain::ports::SQL_INTEGER_MAX;

/// Why a value has no counterpart in D1's answers; the text names it.
pub type Unanswerable = String;

/// Writes all rows; empty text if there are none.
pub fn to_json(mut rows: Rows<'_>) -> rusqlite::Result<Result<String, Unanswerable>> {
    let names: Vec<String> = match rows.as_ref() {
        Some(statement) => statement.column_names().map(quoted).collect(),
        None => Vec::new(),
    };
    let mut json = String::new();
    while let Some(row) = rows.next()? {
        json.push(if json.is_empty() { '[' } else { ',' });
        if let Err(unanswerable) = push_row(&mut json, &names, row)? {
            return Ok(Err(unanswerable));
        }
    }
    if !json.is_empty() {
        json.push(']');
    }
    Ok(Ok(json))
}

fn push_row(
    json: &mut String,
    names: &[String],
    row: &Row<'_>,
) -> rusqlite::Result<Result<(), Unanswerable>> {
    for (at, name) in names.iter().enumerate() {
        json.push(if at == 0 { '{' } else { ',' });
        json.push_str(name);
        json.push(':');
        match value(row.get_ref(at)?) {
            Ok(value) => json.push_str(&value),
            Err(problem) => return Ok(Err(format!("column {name} {problem}"))),
        }
    }
    json.push('}');
    Ok(Ok(()))
}

fn value(value: ValueRef<'_>) -> Result<String, &'static str> {
    match value {
        ValueRef::Null => Ok("null".to_owned()),
        // D1 would answer a rounded number; here it is an error, since nobody asks for that.
        ValueRef::Integer(number) if number.unsigned_abs() > SQL_INTEGER_MAX.unsigned_abs() => {
            Err("holds an integer beyond 2^53")
        }
        ValueRef::Integer(number) => Ok(number.to_string()),
        ValueRef::Real(number) => Ok(real(number)),
        ValueRef::Text(text) => {
            std::str::from_utf8(text).map(quoted).map_err(|_| "holds text that is not UTF-8")
        }
        ValueRef::Blob(_) => Err("holds a BLOB, which no statement of the gateway reads"),
    }
}

/// JavaScript writes a number without a fraction as an integer, and has no text for infinity.
fn real(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() <= SQL_INTEGER_MAX as f64 {
        return (number as i64).to_string();
    }
    serde_json::Number::from_f64(number).map_or_else(|| "null".to_owned(), |number| number.to_string())
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
