//! Tests that opening a database of an older version migrates it without losing rows.

use std::{collections::BTreeMap, path::Path, time::Duration};

use gpumon_history::{
    bucket::BUCKET_MS,
    database::{Database, FILE_NAME},
    span::{MetricSelection, SpanRequest},
};
use gpumon_probe::{
    model::{EventKind, JobKind},
    usage::PERIOD_MS,
};
use rusqlite::Connection;

use crate::{
    support::make_bucket,
    writing::{FIRST_MS, end_writer, start_writer},
};

/// A database of each schema version as SQL, the oldest first. These files must never change.
const VERSIONS: [&str; 1] = [include_str!("version-1.sql")];

/// A database written by gpumon 0.2.0, as SQL. It has the same schema version as the first entry in
/// [`VERSIONS`], but more tables.
const DATABASE_0_2_0: &str = include_str!("version-0.2.0.sql");

/// Returns the names of all tables and indexes in a file, with their columns.
fn read_schema(folder: &Path) -> BTreeMap<String, Vec<String>> {
    let connection = Connection::open(folder.join(FILE_NAME)).unwrap();
    // A writer may still be using the file.
    connection.busy_timeout(Duration::from_mins(1)).unwrap();
    let mut names = connection
        .prepare("SELECT name FROM sqlite_schema")
        .unwrap();
    let names = names
        .query_map([], |row| row.get::<_, String>(0))
        .unwrap()
        .map(Result::unwrap);
    let columns = |name: &String| {
        let mut columns = connection
            .prepare("SELECT name FROM pragma_table_xinfo(?1) ORDER BY name")
            .unwrap();
        columns
            .query_map([name], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect::<Vec<String>>()
    };
    names.map(|name| (name.clone(), columns(&name))).collect()
}

fn read_version(folder: &Path) -> i64 {
    Connection::open(folder.join(FILE_NAME))
        .unwrap()
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

#[test]
fn file_of_each_version_is_migrated() {
    let new = tempfile::tempdir().unwrap();
    drop(Database::open(new.path()).unwrap());
    assert_eq!(
        read_version(new.path()) as usize,
        VERSIONS.len(),
        "each version has its file"
    );
    for sql in VERSIONS {
        let folder = tempfile::tempdir().unwrap();
        Connection::open(folder.path().join(FILE_NAME))
            .unwrap()
            .execute_batch(sql)
            .unwrap();
        let found = read_version(folder.path());
        assert_eq!(
            Database::open_to_read(folder.path())
                .unwrap()
                .read_jobs(None)
                .unwrap(),
            [],
            "none were kept"
        );
        let (writer, reported) = start_writer(folder.path());
        writer.add_bucket(make_bucket(FIRST_MS + 6 * BUCKET_MS, 1));
        end_writer(&writer, folder.path());
        assert_eq!(reported.try_iter().next(), None);
        assert_eq!(
            (read_version(folder.path()), read_schema(folder.path())),
            (read_version(new.path()), read_schema(new.path())),
            "of {found}"
        );

        let request = SpanRequest {
            from_ms: FIRST_MS,
            to_ms: FIRST_MS + 69_999,
            points: 10,
            resolution_ms: None,
            wanted: MetricSelection::select_all(),
        };
        let span = Database::open_to_read(folder.path())
            .unwrap()
            .read_span(&request)
            .unwrap();
        let old = span.gpus.iter().find(|gpu| gpu.uuid == "GPU-a").unwrap();
        let of = |metric: &str| old.metrics[metric].clone();
        assert_eq!(
            of("power.draw_watts").values[..3],
            [Some(412.5), Some(700.0), None]
        );
        assert_eq!(of("power.draw_watts").max.unwrap()[0], Some(431.0));
        assert_eq!(
            of("power.energy_joules_total").values[1],
            Some(12_345_685_901.0)
        );
        assert_eq!(span.host["host.cpu.busy_percent"].values[0], Some(12.5));
        assert!(
            matches!(&span.events[..], [event] if matches!(&event.what, EventKind::Mark(mark) if mark.text == "epoch 3"))
        );
        let ended = &span.conditions[0];
        assert_eq!(
            (ended.from_ms, ended.to_ms),
            (FIRST_MS + 1000, Some(FIRST_MS + 20_000)),
            "its program is gone"
        );
        // The older version did not complete this minute, so the current version has created the
        // minute's row.
        let minute = Connection::open(folder.path().join(FILE_NAME)).unwrap();
        let sql =
            "SELECT power_draw_watts FROM gpu_1min JOIN device ON id = device WHERE uuid = 'GPU-a'";
        assert_eq!(
            minute.query_row(sql, [], |row| row.get::<_, f64>(0)),
            Ok(556.3)
        );
    }
}

#[test]
fn database_of_version_0_2_0_keeps_rows() {
    let folder = tempfile::tempdir().unwrap();
    let connection = Connection::open(folder.path().join(FILE_NAME)).unwrap();
    connection.execute_batch(DATABASE_0_2_0).unwrap();
    drop(connection);
    // The file is opened for reading first, because opening it for writing updates it.
    for open in [Database::open_to_read, Database::open] {
        let database = open(folder.path()).unwrap();
        let jobs = database.read_jobs(None).unwrap();
        assert!(
            matches!(&jobs[..], [job] if job.kind == JobKind::Slurm && job.id == "4711"
                && job.to_ms == FIRST_MS + 19_000 && !job.private),
            "{jobs:?}"
        );
        let used = database.read_usage(FIRST_MS, FIRST_MS + PERIOD_MS).unwrap();
        assert_eq!((used.owners.len(), used.unheld.gpu_seconds), (1, 1.5));
        assert_eq!(used.owners[0].user.as_deref(), Some("ana"));
        assert_eq!(used.owners[0].joules.map(|own| own.most), Some(9000.0));
        let events = database
            .read_events(FIRST_MS, FIRST_MS + 60_000, 10)
            .unwrap();
        let cell = events.iter().find_map(|event| match &event.what {
            EventKind::Cell(cell) => Some(cell),
            _ => None,
        });
        let cell = cell.unwrap();
        assert_eq!((cell.gpu_ms, cell.change_bytes), (Some(9806.0), None));
        let conditions = database
            .read_conditions(FIRST_MS, FIRST_MS + 60_000)
            .unwrap();
        assert_eq!(conditions.len(), 1);
    }
    let new = tempfile::tempdir().unwrap();
    drop(Database::open(new.path()).unwrap());
    assert_eq!(read_schema(folder.path()), read_schema(new.path()));
}
