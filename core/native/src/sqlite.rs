//! A ledger shard on SQLite, as close to D1 as SQLite can be: its limits, its numbers and its counts.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use rusqlite::limits::Limit;
use rusqlite::types::Value as Bound;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, params_from_iter};
use swarm_domain::ports::{
    Outcome, SQL_INTEGER_MAX, SQL_PARAMETERS_MAX, SQL_TEXT_BYTES_MAX, Sql, SqlError, Statement, Value,
};

use crate::migrations::MIGRATIONS;
use crate::rows;

/// D1's limits. SQLite enforces them itself once it is told.
const LIMITS: [(Limit, i32); 6] = [
    (Limit::SQLITE_LIMIT_LENGTH, SQL_TEXT_BYTES_MAX as i32),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 100_000),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, SQL_PARAMETERS_MAX as i32),
    (Limit::SQLITE_LIMIT_COLUMN, 100),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 32),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50),
];

/// How long a batch waits for another process that writes to the same file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Compiled statements that are kept: more than the gateway has.
const STATEMENTS_KEPT: usize = 200;

/// One SQLite database. A clone means the same one.
#[derive(Clone, Debug)]
pub struct SqliteShard(Rc<Connection>);

impl SqliteShard {
    /// An empty database in memory.
    pub fn in_memory() -> Result<Self, SqlError> {
        Self::prepare(Connection::open_in_memory())
    }

    /// The database in a file, made if it is not there.
    pub fn open(path: &Path) -> Result<Self, SqlError> {
        Self::prepare(Connection::open(path))
    }

    /// A database in memory with every migration applied.
    pub fn migrated() -> Result<Self, SqlError> {
        let shard = Self::in_memory()?;
        shard.migrate()?;
        Ok(shard)
    }

    fn prepare(connection: rusqlite::Result<Connection>) -> Result<Self, SqlError> {
        let connection = connection.map_err(sql_error)?;
        for (limit, value) in LIMITS {
            connection.set_limit(limit, value).map_err(sql_error)?;
        }
        connection.busy_timeout(BUSY_TIMEOUT).map_err(sql_error)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
        connection.pragma_update(None, "foreign_keys", true).map_err(sql_error)?;
        Ok(Self(Rc::new(connection)))
    }

    /// Applies the migrations that the database has not had yet, each in a transaction. SQLite's own `user_version` counts
    /// them.
    pub fn migrate(&self) -> Result<(), SqlError> {
        let version = |row: &rusqlite::Row<'_>| row.get::<_, u32>(0);
        let applied = self.0.query_row("PRAGMA user_version", [], version).map_err(sql_error)?;
        for (number, (_, sql)) in (1..).zip(MIGRATIONS).filter(|(number, _)| *number > applied) {
            let transaction = self.transaction()?;
            transaction.execute_batch(sql).map_err(sql_error)?;
            transaction.pragma_update(None, "user_version", number).map_err(sql_error)?;
            transaction.commit().map_err(sql_error)?;
        }
        Ok(())
    }

    /// The database itself, for who watches from outside and for what no port offers.
    pub fn connection(&self) -> &Connection {
        &self.0
    }

    fn transaction(&self) -> Result<Transaction<'_>, SqlError> {
        Transaction::new_unchecked(&self.0, TransactionBehavior::Immediate).map_err(sql_error)
    }

    fn run(&self, statement: Statement) -> Result<Outcome, SqlError> {
        let values = statement.values.into_iter().map(bound).collect::<Result<Vec<_>, _>>()?;
        let mut prepared = self.0.prepare_cached(statement.sql).map_err(sql_error)?;
        // D1 counts what triggers and foreign keys change as well, and so does this.
        let before = self.0.total_changes();
        let rows = prepared.query(params_from_iter(values)).map_err(sql_error)?;
        let rows = rows::to_json(rows).map_err(sql_error)?.map_err(SqlError::Failed)?;
        Ok(Outcome { rows, changes: self.0.total_changes() - before })
    }
}

impl Sql for SqliteShard {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Outcome>, SqlError> {
        // Dropped on an error, the transaction rolls back.
        let transaction = self.transaction()?;
        let outcomes =
            statements.into_iter().map(|statement| self.run(statement)).collect::<Result<_, _>>()?;
        transaction.commit().map_err(sql_error)?;
        Ok(outcomes)
    }
}

/// A parameter as D1 binds it: JavaScript has only one kind of number, so even a whole one arrives as REAL, and a column
/// of STRICT INTEGER makes it an integer again.
fn bound(value: Value) -> Result<Bound, SqlError> {
    match value {
        Value::Null => Ok(Bound::Null),
        Value::Text(text) => Ok(Bound::Text(text)),
        Value::Integer(number) if number.unsigned_abs() > SQL_INTEGER_MAX.unsigned_abs() => {
            Err(SqlError::Failed(format!("{number} is beyond 2^53")))
        }
        Value::Integer(number) => Ok(Bound::Real(number as f64)),
    }
}

fn sql_error(error: rusqlite::Error) -> SqlError {
    let text = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => SqlError::Constraint(text),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::SystemIoFailure) => {
            SqlError::Unavailable(text)
        }
        _ => SqlError::Failed(text),
    }
}
