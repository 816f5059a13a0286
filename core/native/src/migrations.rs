//! The migrations of the ledger, part of the binary, so that a test needs no files.

/// Every file of `migrations/`, in order: its name and its SQL.
pub const MIGRATIONS: &[(&str, &str)] = &[
    ("0001_ledger.sql", include_str!("../../../migrations/0001_ledger.sql")),
    ("0002_billing_invoices.sql", include_str!("../../../migrations/0002_billing_invoices.sql")),
    ("0003_incidents.sql", include_str!("../../../migrations/0003_incidents.sql")),
    ("0004_rejections.sql", include_str!("../../../migrations/0004_rejections.sql")),
    ("0005_history.sql", include_str!("../../../migrations/0005_history.sql")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_migration_was_left_out() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations");
        let names =
            std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<String> = names.filter(|name| name.ends_with(".sql")).collect();
        files.sort();
        assert_eq!(files, MIGRATIONS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}
