//! Tests that a database of an older version is updated without losing any rows.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use gpumon_history::{
    bucket::BUCKET_MS,
    database::{Database, FILE},
    plan::SpanRequest,
    wanted::Wanted,
    writer::{Settings, Writer},
};
use gpumon_probe::{
    model::{EventKind, JobKind},
    usage::PERIOD_MS,
};
use rusqlite::Connection;

use crate::support::bucket;

/// A file of each version, the oldest first. These files never change.
const VERSIONS: [&str; 1] = [include_str!("version-1.sql")];

/// A file of gpumon 0.2.0, which has the same schema version as the first file and more tables.
const OF_0_2_0: &str = include_str!("version-0.2.0.sql");

const FIRST_MS: u64 = 1_800_000_000_000;

/// Returns the names in a file, and the columns of its tables.
fn shape(folder: &Path) -> BTreeMap<String, Vec<String>> {
    let connection = Connection::open(folder.join(FILE)).unwrap();
    // A writer may still use the file.
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

fn version(folder: &Path) -> i64 {
    Connection::open(folder.join(FILE))
        .unwrap()
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

#[test]
fn a_file_of_each_version_is_taken_over_with_its_rows() {
    let new = tempfile::tempdir().unwrap();
    drop(Database::open(new.path()).unwrap());
    assert_eq!(
        version(new.path()) as usize,
        VERSIONS.len(),
        "each version has its file"
    );
    for sql in VERSIONS {
        let folder = tempfile::tempdir().unwrap();
        Connection::open(folder.path().join(FILE))
            .unwrap()
            .execute_batch(sql)
            .unwrap();
        let found = version(folder.path());
        assert_eq!(
            Database::open_to_read(folder.path())
                .unwrap()
                .jobs(None)
                .unwrap(),
            [],
            "none were kept"
        );
        let (tell, told) = mpsc::channel();
        let settings = Settings {
            folder: folder.path().to_owned(),
            size_bytes: 1 << 30,
        };
        let tell = move |problem: &str| drop(tell.send(problem.to_owned()));
        let writer = Writer::start(settings, 600_000, |_| {}, tell).unwrap();
        writer.add_bucket(bucket(FIRST_MS + 6 * BUCKET_MS, 1));
        writer.end();
        // This limit on the end of a writer is the same as that of a server.
        let until = Instant::now() + Duration::from_mins(1);
        while shape(folder.path()) != shape(new.path()) && Instant::now() < until {
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(told.recv_timeout(Duration::from_millis(100)).ok(), None);
        assert_eq!(
            (version(folder.path()), shape(folder.path())),
            (version(new.path()), shape(new.path())),
            "of {found}"
        );

        let request = SpanRequest {
            from_ms: FIRST_MS,
            to_ms: FIRST_MS + 69_999,
            points: 10,
            resolution_ms: None,
            wanted: Wanted::all(),
        };
        let span = Database::open_to_read(folder.path())
            .unwrap()
            .span(&request)
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
        // This row sums up a minute that the older version had not completed.
        let minute = Connection::open(folder.path().join(FILE)).unwrap();
        let sql =
            "SELECT power_draw_watts FROM gpu_1min JOIN device ON id = device WHERE uuid = 'GPU-a'";
        assert_eq!(
            minute.query_row(sql, [], |row| row.get::<_, f64>(0)),
            Ok(556.3)
        );
    }
}

#[test]
fn database_of_0_2_0_keeps_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let connection = Connection::open(folder.path().join(FILE)).unwrap();
    connection.execute_batch(OF_0_2_0).unwrap();
    drop(connection);
    // The file is opened for reading first, because opening it for writing updates it.
    for open in [Database::open_to_read, Database::open] {
        let database = open(folder.path()).unwrap();
        let jobs = database.jobs(None).unwrap();
        assert!(
            matches!(&jobs[..], [job] if job.kind == JobKind::Slurm && job.id == "4711"
                && job.to_ms == FIRST_MS + 19_000 && !job.private),
            "{jobs:?}"
        );
        let used = database.usage(FIRST_MS, FIRST_MS + PERIOD_MS).unwrap();
        assert_eq!((used.owners.len(), used.unheld.gpu_seconds), (1, 1.5));
        assert_eq!(used.owners[0].user.as_deref(), Some("ana"));
        assert_eq!(used.owners[0].joules.map(|own| own.most), Some(9000.0));
        let events = database.events(FIRST_MS, FIRST_MS + 60_000, 10).unwrap();
        let cell = events.iter().find_map(|event| match &event.what {
            EventKind::Cell(cell) => Some(cell),
            _ => None,
        });
        let cell = cell.unwrap();
        assert_eq!((cell.gpu_ms, cell.change_bytes), (Some(9806.0), None));
        let conditions = database.conditions(FIRST_MS, FIRST_MS + 60_000).unwrap();
        assert_eq!(conditions.len(), 1);
    }
    let new = tempfile::tempdir().unwrap();
    drop(Database::open(new.path()).unwrap());
    assert_eq!(shape(folder.path()), shape(new.path()));
}
