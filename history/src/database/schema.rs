//! The tables.

use std::{collections::BTreeSet, fmt::Write};

use gpumon_probe::model::fields::{Field, GPU_FIELDS, HOST_FIELDS, Kind};
use rusqlite::Connection;

use super::{DatabaseError, TIERS};

/// Of the tables. Columns for new fields are no new version.
pub(super) const VERSION: i64 = 2;

/// Tells the file from other programs': "gpmn".
pub(super) const APPLICATION_ID: i64 = 0x6770_6d6e;

/// Kinds of tables that have a row per time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Gpu,
    Host,
}

impl Subject {
    pub(super) const ALL: [Self; 2] = [Self::Gpu, Self::Host];

    /// The table of a tier.
    pub(super) fn table(self, tier: usize) -> String {
        let name = match self {
            Self::Gpu => "gpu",
            Self::Host => "host",
        };
        format!("{name}_{}", TIERS[tier].name)
    }

    /// Those that every table has before those of the catalogue.
    fn keys(self) -> &'static str {
        match self {
            Self::Gpu => {
                "at_ms INTEGER NOT NULL, device INTEGER NOT NULL REFERENCES device (id), samples INTEGER NOT NULL"
            }
            Self::Host => "at_ms INTEGER PRIMARY KEY NOT NULL, samples INTEGER NOT NULL",
        }
    }

    /// The columns of the catalogue: per field, of a gauge three.
    pub(super) fn columns(self) -> Vec<Vec<String>> {
        fn of<S>(fields: &[Field<S>]) -> Vec<Vec<String>> {
            fields.iter().map(|field| columns_of(field.id, field.kind)).collect()
        }
        match self {
            Self::Gpu => of(GPU_FIELDS),
            Self::Host => of(HOST_FIELDS),
        }
    }
}

/// The columns of a field: those of `gpumon --csv`.
pub(super) fn columns_of(id: &str, kind: Kind) -> Vec<String> {
    let name = id.replace('.', "_");
    match kind {
        Kind::Gauge => vec![name.clone(), format!("{name}_min"), format!("{name}_max")],
        Kind::Counter | Kind::State => vec![name],
    }
}

/// The tables beside those of the tiers, with what they are for.
const TABLES: [(&str, &str, &str); 5] = [
    (
        "device",
        "GPUs and MIG devices. `kind` is `gpu` or `mig`; `device_index` is the driver's index, `parent` the UUID of the GPU of \
         a MIG device.",
        "id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, device_index INTEGER NOT NULL, name TEXT, \
         parent TEXT",
    ),
    (
        "event",
        "What happened. `kind` is the key `what` of the JSON, an [Event](api.md#event).",
        "at_ms INTEGER NOT NULL, uuid TEXT, kind TEXT NOT NULL, json TEXT NOT NULL",
    ),
    (
        "condition",
        "What was the matter with a GPU, from its beginning to its end; `to_ms` is NULL while it lasts. `json` is a \
         [Condition](api.md#condition).",
        "uuid TEXT NOT NULL, condition TEXT NOT NULL, severity TEXT NOT NULL, from_ms INTEGER NOT NULL, to_ms INTEGER, \
         text TEXT NOT NULL, json TEXT NOT NULL, UNIQUE (uuid, condition, from_ms)",
    ),
    (
        "run",
        "Runs of the workload runner. `json` is a [Run](api.md#run).",
        "id TEXT PRIMARY KEY, from_ms INTEGER NOT NULL, to_ms INTEGER, json TEXT NOT NULL",
    ),
    (
        "job",
        "Which Slurm job, pod, container, notebook or service was on which GPU or MIG device, a [JobSpan](api.md#jobspan). \
         `to_ms` is when it was seen there last, at most ten seconds late.",
        "kind TEXT NOT NULL, id TEXT NOT NULL, name TEXT, user TEXT, uuid TEXT NOT NULL, from_ms INTEGER NOT NULL, \
         to_ms INTEGER NOT NULL, UNIQUE (kind, id, uuid, from_ms)",
    ),
];

/// Makes the tables, and the columns of fields that are new.
pub(super) fn migrate(connection: &Connection) -> Result<(), DatabaseError> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let mut is_current = version == VERSION;
    let mut sql = String::from("BEGIN IMMEDIATE;\n");
    // Writing to a string cannot fail.
    for (name, _, columns) in TABLES {
        let _ = writeln!(sql, "CREATE TABLE IF NOT EXISTS {name} ({columns});");
    }
    sql += "CREATE INDEX IF NOT EXISTS event_time ON event (at_ms);\n";
    sql += "CREATE INDEX IF NOT EXISTS condition_time ON condition (from_ms);\n";
    sql += "CREATE INDEX IF NOT EXISTS job_time ON job (to_ms);\n";
    for subject in Subject::ALL {
        for tier in 0..TIERS.len() {
            let (table, keys) = (subject.table(tier), subject.keys());
            let known = columns_in(connection, &table)?;
            let columns = subject.columns().concat();
            is_current &= columns.iter().all(|column| known.contains(column));
            if known.is_empty() {
                let columns = columns.iter().fold(String::new(), |all, column| all + ", " + column + " REAL");
                let _ = writeln!(sql, "CREATE TABLE {table} ({keys}{columns});");
                if subject == Subject::Gpu {
                    let _ = writeln!(sql, "CREATE UNIQUE INDEX {table}_time ON {table} (at_ms, device);");
                }
                continue;
            }
            for column in columns.iter().filter(|column| !known.contains(*column)) {
                let _ = writeln!(sql, "ALTER TABLE {table} ADD COLUMN {column} REAL;");
            }
        }
    }
    // A file that is damaged is kept as it was.
    if is_current {
        return Ok(());
    }
    let _ = writeln!(sql, "PRAGMA application_id = {APPLICATION_ID};\nPRAGMA user_version = {VERSION};\nCOMMIT;");
    connection.execute_batch(&sql).inspect_err(|_| drop(connection.execute_batch("ROLLBACK")))?;
    Ok(())
}

/// The columns that a table has; none where there is no such table.
pub(super) fn columns_in(connection: &Connection, table: &str) -> Result<BTreeSet<String>, rusqlite::Error> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    statement.query_map([table], |row| row.get(0))?.collect()
}

/// `docs/reference/history.md`.
pub fn reference() -> String {
    let mut text = String::from(
        "<!-- Generated from the catalogue of fields and the schema by `make types`. Do not edit this file. -->\n\
         # History database\n\n\
         `gpumon serve --data-dir DIR` writes `DIR/history.db`, an SQLite database in WAL mode. Other programs may read it \
         at any time, also while gpumon writes; copy it with `sqlite3 DIR/history.db \".backup copy.db\"`.\n\n",
    );
    let _ = writeln!(
        text,
        "`PRAGMA user_version` is the version of the schema, {VERSION}. Columns of new fields are added without a new \
         version. A gpumon that does not know the version leaves the file as it is and keeps its history in memory.\n\n\
         Times (`_ms`) are milliseconds since 1970-01-01 UTC.\n\n## Tables\n\n| Table | Contents |\n|---|---|"
    );
    for (tier, stored) in TIERS.iter().enumerate() {
        let (gpu, host) = (Subject::Gpu.table(tier), Subject::Host.table(tier));
        let days = stored.keep_ms / super::DAY_MS;
        let _ = writeln!(
            text,
            "| `{gpu}`, `{host}` | A row per {} seconds and GPU or MIG device, or of the host; kept for {days} days. |",
            stored.resolution_ms / 1000
        );
    }
    for (name, meaning, _) in TABLES {
        let _ = writeln!(text, "| `{name}` | {meaning} |");
    }
    for (name, _, columns) in TABLES {
        let _ = writeln!(text, "\n### {name}\n\n```sql\n{columns}\n```");
    }
    for (subject, title) in
        [(Subject::Gpu, "gpu_10s, gpu_1min, gpu_15min"), (Subject::Host, "host_10s, host_1min, host_15min")]
    {
        let keys = subject.keys();
        let _ = writeln!(
            text,
            "\n### {title}\n\n```sql\n{keys}\n```\n\n`at_ms` is the beginning of the row's time, `samples` how many samples \
             it is made of. NULL is what was not read. A column per field of the [catalogue](fields.md), named as in \
             `gpumon --csv`: the mean of a gauge, with the least (`_min`) and the largest (`_max`), to four digits; the \
             last value of a counter or a state.\n\n| Field | Columns |\n|---|---|"
        );
        let ids: Vec<_> = match subject {
            Subject::Gpu => GPU_FIELDS.iter().map(|field| field.id).collect(),
            Subject::Host => HOST_FIELDS.iter().map(|field| field.id).collect(),
        };
        for (id, columns) in ids.iter().zip(subject.columns()) {
            let columns: Vec<_> = columns.iter().map(|column| format!("`{column}`")).collect();
            let _ = writeln!(text, "| `{id}` | {} |", columns.join(", "));
        }
    }
    text
}
