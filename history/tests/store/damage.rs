//! Tests with damaged files: a new file is created, and all readable rows are copied to it.

use std::{fs, path::Path, time::Duration};

use gpumon_history::{
    bucket::{BUCKET_MS, Bucket},
    database::{Database, DatabaseError, FILE_NAME},
    grid::Grid,
    jobs::JobSpan,
    span::{MetricSelection, SpanRequest},
};
use gpumon_probe::{
    model::{Cell, Event, EventKind, JobKind, Run, RunKind, RunStatus},
    usage::Period,
};
use rusqlite::{Connection, OpenFlags};

use crate::{
    support::make_bucket,
    writing::{
        FIRST_MS, end_writer, make_condition, make_mark, receive_message, start_writer, wait_until,
    },
};

/// Checks the whole database in a directory for damage.
pub(crate) fn assert_intact(folder: &Path) {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(folder.join(FILE_NAME), flags).unwrap();
    let found: String = connection
        .pragma_query_value(None, "integrity_check", |row| row.get(0))
        .unwrap();
    assert_eq!(found, "ok");
}

#[test]
fn damaged_file_is_moved_aside_and_replaced() {
    for damage in ["no database", "a damaged page"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE_NAME);
        let (writer, _told) = start_writer(folder.path());
        (0..200).for_each(|at| writer.add_bucket(make_bucket(FIRST_MS + at * BUCKET_MS, 2)));
        wait_until("they are written", || {
            writer.status().written_ms >= FIRST_MS + 200 * BUCKET_MS
        });
        end_writer(&writer, folder.path());
        let mut bytes = fs::read(&file).unwrap();
        if damage == "no database" {
            bytes = b"nothing that SQLite knows".repeat(1000);
        } else {
            let middle = bytes.len() / 2;
            bytes[8192..middle].fill(0xa5);
        }
        fs::write(&file, &bytes).unwrap();
        let (writer, reported) = start_writer(folder.path());
        (200..230).for_each(|at| writer.add_bucket(make_bucket(FIRST_MS + at * BUCKET_MS, 2)));
        let reported = receive_message(&reported);
        assert!(
            reported.contains("was damaged: it was renamed to history.db.corrupt-"),
            "{damage}: {reported}"
        );
        wait_until("it is written again", || {
            writer.status().problem.is_none() && writer.status().is_readable
        });
        end_writer(&writer, folder.path());
        assert_intact(folder.path());
        let kept = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let kept = kept.filter(|path| {
            path.to_string_lossy().contains(".corrupt-") && !path.to_string_lossy().contains("-wal")
        });
        assert!(
            kept.map(|path| fs::read(path).unwrap())
                .any(|kept| kept == bytes),
            "{damage}: it is kept as it was"
        );
    }
}

/// Writes one event and `buckets` buckets, and closes the file.
fn write_hours(folder: &Path, buckets: u64) {
    let (writer, _told) = start_writer(folder);
    writer.add_event(make_mark(FIRST_MS));
    (0..buckets).for_each(|at| writer.add_bucket(make_bucket(FIRST_MS + at * BUCKET_MS, 2)));
    wait_until("they are written", || {
        writer.status().written_ms >= FIRST_MS + buckets * BUCKET_MS
    });
    end_writer(&writer, folder);
}

/// Overwrites the given pages of a database with garbage.
fn overwrite_pages(folder: &Path, pages: impl Iterator<Item = u64>) {
    let mut bytes = fs::read(folder.join(FILE_NAME)).unwrap();
    pages.for_each(|page| bytes[(page as usize - 1) * 8192..page as usize * 8192].fill(0xa5));
    fs::write(folder.join(FILE_NAME), &bytes).unwrap();
}

/// Reads the rows of all tiers, and a span.
fn read_all(database: &Database) -> Result<(), DatabaseError> {
    let request = SpanRequest {
        from_ms: FIRST_MS,
        to_ms: u64::MAX >> 1,
        points: 1,
        resolution_ms: None,
        wanted: MetricSelection::select_all(),
    };
    let mut grid = Grid::new(
        FIRST_MS,
        u64::MAX >> 1,
        3_600_000,
        MetricSelection::select_all(),
    );
    for (tier, _) in database.list_tiers()? {
        database.add_to_grid(&mut grid, tier)?;
    }
    database.read_span(&request).map(|_| ())
}

fn make_cell() -> Cell {
    Cell {
        notebook: "train.ipynb".to_owned(),
        user: None,
        kernel_id: "0123".to_owned(),
        cell_id: "a".to_owned(),
        execution_count: Some(1),
        started_ms: FIRST_MS,
        ended_ms: FIRST_MS + 1000,
        gpus: vec![0],
        gpu_ms: None,
        peak_bytes: None,
        change_bytes: None,
        joules: None,
        shared: false,
    }
}

fn make_job(from_ms: u64) -> JobSpan {
    let [id, uuid] = ["88123", "GPU-a"].map(str::to_owned);
    JobSpan {
        kind: JobKind::Slurm,
        id,
        name: None,
        user: None,
        uuid,
        from_ms,
        to_ms: from_ms + 1000,
        private: false,
    }
}

#[test]
fn file_with_damaged_page_is_replaced() {
    let whole = tempfile::tempdir().unwrap();
    write_hours(whole.path(), 200);
    let schema = Connection::open(whole.path().join(FILE_NAME)).unwrap();
    let mut roots = schema
        .prepare("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0")
        .unwrap();
    let roots = roots
        .query_map([], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        })
        .unwrap();
    let roots: Vec<_> = roots
        .map(Result::unwrap)
        .chain([("the first page".to_owned(), 1)])
        .collect();
    assert!(roots.len() > 12, "{roots:?}");
    for (name, page) in roots {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(whole.path().join(FILE_NAME), folder.path().join(FILE_NAME)).unwrap();
        overwrite_pages(folder.path(), [page as u64].into_iter());
        let (writer, reported) = start_writer(folder.path());
        let run = Run {
            run: "another".to_owned(),
            kind: RunKind::Bench,
            title: "copy".to_owned(),
            step: None,
            status: RunStatus::Running,
        };
        writer.add_event(Event {
            what: EventKind::RunBegan(run),
            ..make_mark(FIRST_MS + 399 * BUCKET_MS)
        });
        writer.add_event(Event {
            what: EventKind::Cell(make_cell()),
            ..make_mark(FIRST_MS + 399 * BUCKET_MS)
        });
        // These rows cover half an hour, so rows are added to all tiers. The writer then also reads
        // damaged pages that no reader has read.
        (200..400).for_each(|at| writer.add_bucket(make_bucket(FIRST_MS + at * BUCKET_MS, 1)));
        let (conditions, jobs) = (vec![make_condition(FIRST_MS)], vec![make_job(FIRST_MS)]);
        let usage = vec![Period {
            at_ms: FIRST_MS,
            ..Period::default()
        }];
        writer.add_bucket(Bucket {
            conditions,
            jobs,
            usage,
            ..make_bucket(FIRST_MS + 400 * BUCKET_MS, 1)
        });
        let end_ms = FIRST_MS + 401 * BUCKET_MS;
        wait_until(&name, || {
            writer.status().written_ms == end_ms && writer.status().problem.is_none()
        });
        let reader = writer.open_reader().unwrap().expect("it can be read");
        if let Err(error) = read_all(&reader) {
            writer.report_read_error(&reader, &error);
        }
        drop(reader);
        let reported = reported
            .recv_timeout(Duration::from_mins(1))
            .unwrap_or_else(|_| panic!("{name} is met by nobody"));
        assert!(
            reported.contains("was damaged: it was renamed to history.db.corrupt-"),
            "{name}: {reported}"
        );
        wait_until(&name, || {
            writer
                .open_reader()
                .unwrap()
                .is_some_and(|reader| read_all(&reader).is_ok())
        });
        end_writer(&writer, folder.path());
    }
}

#[test]
fn readable_rows_are_copied_to_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (1000, 30);
    write_hours(folder.path(), first);
    let pages = fs::metadata(folder.path().join(FILE_NAME)).unwrap().len() / 8192;
    overwrite_pages(folder.path(), (1..8).map(|part| pages * part / 8));
    let (writer, reported) = start_writer(folder.path());
    (first..first + second)
        .for_each(|at| writer.add_bucket(make_bucket(FIRST_MS + at * BUCKET_MS, 2)));
    wait_until("what is new is written", || {
        writer.status().written_ms == FIRST_MS + (first + second) * BUCKET_MS
    });
    let reader = writer.open_reader().unwrap().expect("it can be read");
    if let Err(error) = read_all(&reader) {
        writer.report_read_error(&reader, &error);
        // The file has already been replaced, so a second report about it must have no effect.
        wait_until("it is put aside", || {
            writer.status().is_readable && read_all(&reader).is_err()
        });
        writer.report_read_error(&reader, &error);
    }
    drop(reader);
    let reported: Vec<_> = std::iter::repeat_with(|| receive_message(&reported))
        .take(2)
        .collect();
    assert!(
        reported[0].contains("was damaged")
            && reported[1].contains("rows were recovered from")
            && reported[1].contains("and copied to history.db"),
        "{reported:?}"
    );
    end_writer(&writer, folder.path());
    let database = Connection::open(folder.path().join(FILE_NAME)).unwrap();
    let count = |table: &str| {
        database
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
                row.get::<_, i64>(0)
            })
            .unwrap() as u64
    };
    // The seven damaged pages contain at most a hundred rows of this table.
    let all = first + second;
    assert!(
        (all - 100..=all).contains(&count("host_10s")),
        "{}",
        count("host_10s")
    );
    assert!(
        (2 * all - 100..=2 * all).contains(&count("gpu_10s")),
        "{}",
        count("gpu_10s")
    );
    let minutes = count("host_1min");
    assert!((all / 6 - 20..=all / 6).contains(&minutes), "{minutes}");
    assert_eq!(
        count("gpu_10s JOIN device ON device.id = device WHERE name = 'NVIDIA H200'"),
        count("gpu_10s")
    );
    assert_eq!((count("device"), count("event")), (2, 1));
    assert_intact(folder.path());
}
