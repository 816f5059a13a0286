//! The migrations, applied in order, against the schema that is kept as one readable file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rusqlite::Connection;

use crate::workspace::{Workspace, files_with_extension};

const MIGRATIONS: &str = "migrations";

/// A subfolder, because wrangler applies every .sql file that lies beside the migrations.
const SNAPSHOT: &str = "migrations/snapshot/schema.sql";

const HEADING: &str = "-- The whole schema, as all migrations leave it. Made by `cargo xtask check --bless`; edit those instead.\n";

/// Fails unless the snapshot is what the migrations give.
pub fn check(workspace: &Workspace) -> Result<()> {
    let snapshot = fs::read_to_string(workspace.root.join(SNAPSHOT)).unwrap_or_default();
    let schema = schema_of(&files_with_extension(&workspace.root.join(MIGRATIONS), "sql")?)?;
    let differs = schema.lines().zip(snapshot.lines()).find(|(is, was)| is != was);
    if schema == snapshot {
        return Ok(());
    }
    let place = differs.map(|(is, was)| format!("\n  now:      {is}\n  snapshot: {was}")).unwrap_or_default();
    bail!(
        "{SNAPSHOT} is not what the migrations give; run `cargo xtask check --bless` and look at the diff{place}"
    );
}

/// Writes the snapshot anew.
pub fn bless(workspace: &Workspace) -> Result<()> {
    let schema = schema_of(&files_with_extension(&workspace.root.join(MIGRATIONS), "sql")?)?;
    let path = workspace.root.join(SNAPSHOT);
    fs::create_dir_all(path.parent().unwrap_or(Path::new(MIGRATIONS)))?;
    fs::write(&path, schema)?;
    println!("wrote {SNAPSHOT}");
    Ok(())
}

/// What SQLite knows after the migrations: tables with their indexes and triggers, then views, each by name.
fn schema_of(migrations: &[PathBuf]) -> Result<String> {
    let database = Connection::open_in_memory()?;
    for migration in migrations {
        let sql = fs::read_to_string(migration)?;
        database.execute_batch(&sql).with_context(|| format!("{} fails", migration.display()))?;
    }
    let mut statement = database.prepare(
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
         ORDER BY type = 'view', tbl_name, type <> 'table', name",
    )?;
    let mut text = String::from(HEADING);
    for sql in statement.query_map([], |row| row.get::<_, String>(0))? {
        text.push_str(&format!("\n{};\n", sql?));
    }
    Ok(text)
}
