//! The tables of the database, and their migrations.

use std::{collections::BTreeSet, fmt::Write};

use gpumon_probe::model::{JobKind, fields::Kind};
use rusqlite::Connection;

use super::{DAY_MS, DatabaseError, TIERS};
use crate::span::{DeviceKind, Metric};

/// The application ID of gpumon's databases in the file header: "gpmn".
pub(super) const APPLICATION_ID: i64 = 0x6770_6d6e;

/// The kinds of tables that each tier has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Gpu,
    Host,
}

impl Subject {
    pub(super) const ALL: [Self; 2] = [Self::Gpu, Self::Host];

    /// Returns the name of the table for a tier.
    pub(super) fn table_name(self, tier: usize) -> String {
        let name = match self {
            Self::Gpu => "gpu",
            Self::Host => "host",
        };
        format!("{name}_{}", TIERS[tier].name)
    }

    /// Returns the SQL definitions of the columns that precede the field columns.
    pub(super) fn key_columns(self) -> &'static str {
        match self {
            Self::Gpu => {
                "at_ms INTEGER NOT NULL, device INTEGER NOT NULL REFERENCES device (id), samples \
                 INTEGER NOT NULL"
            }
            Self::Host => "at_ms INTEGER PRIMARY KEY NOT NULL, samples INTEGER NOT NULL",
        }
    }

    /// Returns the column names of each field: three for a gauge, one for other kinds.
    pub(super) fn stat_column_names(self) -> Vec<Vec<String>> {
        let columns = self.metrics().iter();
        columns
            .map(|metric| column_names(metric.field, metric.kind))
            .collect()
    }

    /// Returns the SQL expression for a row's device.
    pub(super) fn device_expression(self) -> &'static str {
        match self {
            Self::Gpu => "device",
            Self::Host => "0",
        }
    }

    /// Returns the SQL statement that selects the rows of a tier, without a condition. The columns
    /// are the time, the device, the number of samples and the columns of all fields.
    pub(super) fn select_rows_sql(self, tier: usize) -> String {
        format!(
            "SELECT at_ms, {}, samples, {} FROM {}",
            self.device_expression(),
            self.stat_column_names().concat().join(", "),
            self.table_name(tier)
        )
    }

    pub(super) fn metrics(self) -> &'static [Metric] {
        match self {
            Self::Gpu => DeviceKind::Gpu.metrics(),
            Self::Host => DeviceKind::Host.metrics(),
        }
    }
}

/// Returns the column names of a field, which are the same as in `gpumon --csv`.
pub(super) fn column_names(id: &str, kind: Kind) -> Vec<String> {
    let name = id.replace('.', "_");
    match kind {
        Kind::Gauge => vec![name.clone(), format!("{name}_min"), format!("{name}_max")],
        Kind::Counter | Kind::State => vec![name],
    }
}

/// A table that does not belong to a tier. To add a table, an entry in [`TABLES`] and a description
/// in `reference_tests.rs` are needed: the table is then created in files that lack it, and is
/// included in retention, salvage and the reference.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static str,
    /// The names of the indexes with their definitions.
    indexes: &'static [(&'static str, &'static str)],
    /// The column with a row's time, and the time for which rows are kept. `None` for a table with
    /// few rows, which are kept forever.
    pub(super) kept: Option<(&'static str, u64)>,
}

/// The time for which most rows are kept.
const YEAR_MS: u64 = 365 * DAY_MS;

pub(super) const TABLES: &[Table] = &[
    Table {
        name: "device",
        columns: "id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, \
                  device_index INTEGER NOT NULL, name TEXT, parent TEXT",
        indexes: &[],
        kept: None,
    },
    Table {
        name: "event",
        columns: "at_ms INTEGER NOT NULL, uuid TEXT, kind TEXT NOT NULL, json TEXT NOT NULL",
        indexes: &[
            ("event_time", "event (at_ms)"),
            ("event_important", IMPORTANT_EVENTS),
        ],
        kept: Some(("at_ms", YEAR_MS)),
    },
    Table {
        name: "condition",
        columns: "uuid TEXT NOT NULL, condition TEXT NOT NULL, severity TEXT NOT NULL, from_ms \
                  INTEGER NOT NULL, to_ms INTEGER, text TEXT NOT NULL, json TEXT NOT NULL, UNIQUE \
                  (uuid, condition, from_ms)",
        indexes: &[
            ("condition_time", "condition (from_ms)"),
            ("condition_end", "condition (to_ms, from_ms)"),
        ],
        kept: Some(("to_ms", YEAR_MS)),
    },
    Table {
        name: "cell",
        columns: "notebook TEXT NOT NULL, kernel_id TEXT NOT NULL, cell_id TEXT NOT NULL, \
                  execution_count INTEGER, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL, \
                  gpus TEXT NOT NULL, gpu_ms REAL, peak_bytes REAL, change_bytes REAL, joules \
                  REAL, shared INTEGER NOT NULL, UNIQUE (kernel_id, cell_id, started_ms)",
        indexes: &[("cell_end", "cell (ended_ms)")],
        kept: Some(("ended_ms", YEAR_MS)),
    },
    Table {
        name: "run",
        columns: "id TEXT PRIMARY KEY, from_ms INTEGER NOT NULL, to_ms INTEGER, json TEXT NOT NULL",
        indexes: &[("run_end", "run (to_ms)")],
        kept: Some(("to_ms", YEAR_MS)),
    },
    Table {
        name: "job",
        columns: "kind TEXT NOT NULL, id TEXT NOT NULL, name TEXT, user TEXT, uuid TEXT NOT NULL, \
                  from_ms INTEGER NOT NULL, to_ms INTEGER NOT NULL, UNIQUE (kind, id, uuid, \
                  from_ms)",
        indexes: &[("job_end", "job (to_ms)")],
        kept: Some(("to_ms", YEAR_MS)),
    },
    Table {
        name: "usage",
        columns: "at_ms INTEGER NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, user TEXT NOT \
                  NULL, name TEXT, gpu_seconds REAL NOT NULL, exclusive_seconds REAL NOT NULL, \
                  active_seconds REAL NOT NULL, joules_least REAL, joules_most REAL, \
                  joules_estimate REAL, UNIQUE (at_ms, kind, id, user)",
        indexes: &[],
        kept: Some(("at_ms", YEAR_MS)),
    },
];

/// The SQL condition for process events. They are frequent, so they are kept for a shorter time
/// than other events and are dropped first.
pub(super) const IS_PROCESS_EVENT: &str = "kind IN ('process_started', 'process_ended')";

/// The index for all events except process events.
const IMPORTANT_EVENTS: &str =
    "event (at_ms) WHERE kind NOT IN ('process_started', 'process_ended')";

/// The SQL migrations, each from one version of the tables to the next. The first entry migrates to
/// version 2. A new entry also needs a case in `history/tests/store/versions.rs`. New tables,
/// indexes and fields need no new version.
const MIGRATIONS: &[&str] = &[];

/// The current version of the tables.
pub(super) const VERSION: i64 = 1 + MIGRATIONS.len() as i64;

/// Returns the names of all tables: first the tables of [`TABLES`], then the tiers from coarse to
/// fine.
pub(super) fn table_names() -> impl Iterator<Item = String> {
    let tiers = (0..TIERS.len())
        .rev()
        .flat_map(|tier| [Subject::Host, Subject::Gpu].map(|subject| subject.table_name(tier)));
    TABLES
        .iter()
        .map(|table| table.name.to_owned())
        .chain(tiers)
}

/// Creates missing tables, indexes and columns, and migrates older versions. If nothing is missing,
/// nothing is written, so that an up-to-date file can be opened on a full disk.
pub(super) fn migrate_schema(connection: &Connection) -> Result<(), DatabaseError> {
    apply_migrations(MIGRATIONS, connection)
}

/// Runs, in one transaction, the migrations that the file still needs.
fn apply_migrations(steps: &[&str], connection: &Connection) -> Result<(), DatabaseError> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let version = 1 + steps.len() as i64;
    // An empty file needs no migrations, because its tables are created in the current version.
    let done = if found == 0 {
        steps.len()
    } else {
        (found - 1) as usize
    };
    let steps = steps[done..].join(";\n");
    let work = || {
        connection.execute_batch(&steps)?;
        let sql = build_missing_schema_sql(connection)?;
        if !sql.is_empty() || found != version {
            let stamp = format!(
                "PRAGMA application_id = {APPLICATION_ID};\nPRAGMA user_version = {version};\n"
            );
            connection.execute_batch(&(sql + &stamp))?;
        }
        Ok::<_, rusqlite::Error>(())
    };
    if steps.is_empty() && found == version && build_missing_schema_sql(connection)?.is_empty() {
        return Ok(());
    }
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let done = work().and_then(|()| connection.execute_batch("COMMIT"));
    done.inspect_err(|_| drop(connection.execute_batch("ROLLBACK")))?;
    Ok(())
}

/// Returns the SQL that creates missing tables, indexes and columns.
fn build_missing_schema_sql(connection: &Connection) -> Result<String, rusqlite::Error> {
    let known = list_table_and_index_names(connection)?;
    let mut sql = String::new();
    // Writing to a string cannot fail, so the results of `writeln!` are ignored.
    for Table {
        name,
        columns,
        indexes,
        ..
    } in TABLES
    {
        if !known.contains(*name) {
            let _ = writeln!(sql, "CREATE TABLE {name} ({columns});");
        }
        for (index, of) in indexes.iter().filter(|(index, _)| !known.contains(*index)) {
            let _ = writeln!(sql, "CREATE INDEX {index} ON {of};");
        }
    }
    for subject in Subject::ALL {
        for tier in 0..TIERS.len() {
            let (table, keys) = (subject.table_name(tier), subject.key_columns());
            let known = read_columns(connection, &table)?;
            let columns = subject.stat_column_names().concat();
            if known.is_empty() {
                let columns = columns
                    .iter()
                    .fold(String::new(), |all, column| all + ", " + column + " REAL");
                let _ = writeln!(sql, "CREATE TABLE {table} ({keys}{columns});");
                if subject == Subject::Gpu {
                    let _ = writeln!(
                        sql,
                        "CREATE UNIQUE INDEX {table}_time ON {table} (at_ms, device);"
                    );
                }
                continue;
            }
            for column in columns.iter().filter(|column| !known.contains(*column)) {
                let _ = writeln!(sql, "ALTER TABLE {table} ADD COLUMN {column} REAL;");
            }
        }
    }
    Ok(sql)
}

/// Returns the names of all tables and indexes.
fn list_table_and_index_names(
    connection: &Connection,
) -> Result<BTreeSet<String>, rusqlite::Error> {
    connection
        .prepare("SELECT name FROM sqlite_schema")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Returns the column names of a table, or an empty list if the table does not exist.
pub(super) fn read_columns(
    connection: &Connection,
    table: &str,
) -> Result<BTreeSet<String>, rusqlite::Error> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    statement.query_map([table], |row| row.get(0))?.collect()
}

/// The stored names for kinds of batch jobs with a private ID, which is found only in the
/// environment of the processes. Earlier versions do not know these kinds, and show the user
/// instead of the job.
const PRIVATE_KINDS: [(&str, JobKind); 3] = [
    ("private_slurm", JobKind::Slurm),
    ("private_pbs", JobKind::Pbs),
    ("private_lsf", JobKind::Lsf),
];

/// Returns the stored name of a job's kind.
pub(super) fn job_kind_word(kind: JobKind, private: bool) -> &'static str {
    let is_private = |(_, its): &&(_, JobKind)| private && *its == kind;
    PRIVATE_KINDS
        .iter()
        .find(is_private)
        .map_or(kind.json_name(), |(word, _)| word)
}

/// Parses a stored kind into the kind and [`Job::private`](gpumon_probe::model::Job::private).
/// Returns `None` for a kind of a newer version.
pub(super) fn parse_job_kind(word: &str) -> Option<(JobKind, bool)> {
    let private = PRIVATE_KINDS
        .iter()
        .find(|(its, _)| *its == word)
        .map(|(_, kind)| (*kind, true));
    private.or_else(|| Some((JobKind::from_json_name(word)?, false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_kind_word_keeps_privacy_of_batch_job() {
        for (kind, private, word) in [
            (JobKind::Slurm, true, "private_slurm"),
            (JobKind::Pbs, true, "private_pbs"),
            (JobKind::Lsf, true, "private_lsf"),
            (JobKind::Pbs, false, "pbs"),
            (JobKind::Pod, false, "pod"),
        ] {
            assert_eq!(
                (job_kind_word(kind, private), parse_job_kind(word)),
                (word, Some((kind, private)))
            );
        }
        assert_eq!(parse_job_kind("private_newer"), None);
    }

    #[test]
    fn migration_runs_once_or_is_rolled_back() {
        let connection = Connection::open_in_memory().unwrap();
        apply_migrations(&[], &connection).unwrap();
        let version = || {
            connection
                .pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))
                .unwrap()
        };
        connection
            .execute_batch("INSERT INTO run (id, from_ms, json) VALUES ('a', 5, '{}')")
            .unwrap();
        let add = "ALTER TABLE run ADD COLUMN gpu TEXT; UPDATE run SET gpu = 'GPU-' || id";
        let broken = [add, "UPDATE run SET nothing = 1"];
        assert!(
            apply_migrations(&broken, &connection)
                .unwrap_err()
                .to_string()
                .contains("nothing")
        );
        assert_eq!(
            (
                version(),
                read_columns(&connection, "run").unwrap().contains("gpu")
            ),
            (1, false)
        );
        let steps = [add, "DROP INDEX run_end; UPDATE run SET gpu = gpu || '!'"];
        for _ in 0..2 {
            apply_migrations(&steps, &connection).unwrap();
        }
        let gpu: String = connection
            .query_row("SELECT gpu FROM run", [], |row| row.get(0))
            .unwrap();
        assert_eq!((version(), gpu), (3, "GPU-a!".to_owned()));
        assert!(
            list_table_and_index_names(&connection)
                .unwrap()
                .contains("run_end"),
            "what a step takes away is made as it is now"
        );
        let changes = connection.total_changes();
        apply_migrations(&steps, &connection).unwrap();
        assert_eq!(connection.total_changes(), changes);
        let empty = Connection::open_in_memory().unwrap();
        apply_migrations(&broken, &empty).unwrap();
        assert!(
            !read_columns(&empty, "run").unwrap().contains("gpu"),
            "an empty file needs no steps"
        );
    }
}
