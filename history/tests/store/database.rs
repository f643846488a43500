//! Tests of the database that read it with SQL.

use std::{fs, path::Path, sync::mpsc, time::Duration};

use gpumon_history::{
    bucket::{BUCKET_MS, Bucket, Device},
    database::{Database, FILE_NAME},
    jobs::JobSpan,
    span::{ConditionSpan, MetricSelection, SpanRequest},
    writer::{RestoredHistory, Writer, WriterSettings},
};
use gpumon_probe::{
    model::{
        Condition, ConditionKind, Event, EventKind, JobKind, Mark, Severity, fields::GPU_FIELDS,
        now_ms,
    },
    stat::Stat,
    usage::{Period, UnheldUsage},
};
use rusqlite::Connection;

use crate::{
    support::make_bucket,
    writing::{FIRST_MS, SIZE_LIMIT, end_writer, start_writer, wait_until},
};

/// Writes `buckets` and ends the writer.
fn write_buckets(folder: &Path, buckets: impl IntoIterator<Item = Bucket>) {
    let (writer, reported) = start_writer(folder);
    for bucket in buckets {
        let end_ms = bucket.at_ms + BUCKET_MS;
        writer.add_bucket(bucket);
        wait_until("it is written", || writer.status().written_ms >= end_ms);
    }
    end_writer(&writer, folder);
    assert_eq!(
        reported.try_iter().collect::<Vec<_>>(),
        Vec::<String>::new()
    );
}

#[test]
fn usage_is_added_up_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let used = |at_ms, gpu_seconds| Bucket {
        usage: vec![Period {
            at_ms: FIRST_MS,
            owners: vec![],
            unheld: UnheldUsage {
                gpu_seconds,
                joules: 1.0,
            },
        }],
        ..make_bucket(at_ms, 1)
    };
    write_buckets(
        folder.path(),
        [used(FIRST_MS, 8.0), used(FIRST_MS + BUCKET_MS, 10.0)],
    );
    write_buckets(
        folder.path(),
        [
            used(FIRST_MS + BUCKET_MS, 5.0),
            used(FIRST_MS + 2 * BUCKET_MS, 0.0),
        ],
    );
    let sum = Database::open_to_read(folder.path())
        .unwrap()
        .read_usage(0, u64::MAX >> 1)
        .unwrap();
    assert_eq!(
        sum.unheld,
        UnheldUsage {
            gpu_seconds: 23.0,
            joules: 4.0
        }
    );
    // A file from an earlier version has no `usage` table until gpumon writes to the file.
    Connection::open(folder.path().join(FILE_NAME))
        .unwrap()
        .execute("DROP TABLE usage", [])
        .unwrap();
    let earlier = Database::open_to_read(folder.path()).unwrap();
    assert_eq!(
        (
            earlier.usage_time_range_ms().unwrap(),
            earlier.read_usage(0, FIRST_MS).unwrap()
        ),
        (None, Period::default())
    );
    write_buckets(folder.path(), [used(FIRST_MS + 3 * BUCKET_MS, 1.0)]);
    assert_eq!(
        earlier.usage_time_range_ms().unwrap(),
        Some((FIRST_MS, FIRST_MS))
    );
}

fn query_value<T: rusqlite::types::FromSql>(folder: &Path, sql: &str) -> T {
    Connection::open(folder.join(FILE_NAME))
        .unwrap()
        .query_row(sql, [], |row| row.get(0))
        .unwrap()
}

fn power_stat(bucket: &Bucket) -> Stat {
    let place = GPU_FIELDS
        .iter()
        .position(|field| field.id == "power.draw_watts")
        .unwrap();
    bucket.devices[0].stats[place].unwrap()
}

#[test]
fn rows_are_readable_by_sql_in_all_tiers() {
    let folder = tempfile::tempdir().unwrap();
    let buckets: Vec<_> = (0..13)
        .map(|at| make_bucket(FIRST_MS + at * BUCKET_MS, 2))
        .collect();
    write_buckets(folder.path(), buckets.clone());
    // Integers must also be stored exactly.
    let number = |sql: &str| Some(query_value::<f64>(folder.path(), sql));
    assert_eq!(
        number("SELECT count(*) FROM gpu_10s JOIN device ON device.id = device WHERE kind = 'gpu'"),
        Some(26.0)
    );
    assert_eq!(number("SELECT count(*) FROM gpu_1min"), Some(4.0));
    assert_eq!(
        number("SELECT power_draw_watts FROM gpu_10s ORDER BY at_ms, device LIMIT 1"),
        Some(power_stat(&buckets[0]).mean)
    );
    let minute: Vec<_> = buckets[..6].iter().map(power_stat).collect();
    let mean = minute.iter().map(|stat| stat.mean).sum::<f64>() / 6.0;
    let first = "FROM gpu_1min ORDER BY at_ms, device LIMIT 1";
    assert!(
        (number(&format!("SELECT power_draw_watts {first}")).unwrap() - mean).abs() < mean * 1e-3
    );
    let least = minute.iter().map(|stat| stat.min).fold(f64::MAX, f64::min);
    assert_eq!(
        number(&format!("SELECT power_draw_watts_min {first}")),
        Some(least)
    );
    assert_eq!(number(&format!("SELECT samples {first}")), Some(60.0));
    let joules = "power_energy_joules_total";
    let counted = number(&format!(
        "SELECT {joules} FROM gpu_10s ORDER BY at_ms, device LIMIT 1 OFFSET 10"
    ));
    assert_eq!(
        number(&format!("SELECT {joules} {first}")),
        counted,
        "the last of a counter"
    );
}

#[test]
fn bucket_split_by_restart_is_merged() {
    let folder = tempfile::tempdir().unwrap();
    let whole = make_bucket(FIRST_MS, 1);
    let other = Bucket {
        at_ms: FIRST_MS,
        ..make_bucket(FIRST_MS + 3_600_000, 1)
    };
    write_buckets(folder.path(), [whole.clone()]);
    write_buckets(folder.path(), [other.clone()]);
    assert_eq!(
        query_value::<u32>(folder.path(), "SELECT samples FROM gpu_10s"),
        20
    );
    let mean = f64::midpoint(power_stat(&whole).mean, power_stat(&other).mean);
    assert!(
        (query_value::<f64>(folder.path(), "SELECT power_draw_watts FROM gpu_10s") - mean).abs()
            < 0.1
    );
}

#[test]
fn late_sample_updates_stored_bucket_and_minute() {
    let folder = tempfile::tempdir().unwrap();
    let late = |at_ms| Bucket {
        at_ms,
        ..make_bucket(at_ms + 3_600_000, 1)
    };
    let buckets = (0..6).map(|at| make_bucket(FIRST_MS + at * BUCKET_MS, 1));
    write_buckets(
        folder.path(),
        buckets.chain([late(FIRST_MS + 5 * BUCKET_MS)]),
    );
    let samples = |table: &str| {
        query_value::<u32>(folder.path(), &format!("SELECT sum(samples) FROM {table}"))
    };
    assert_eq!(
        (
            samples("gpu_10s"),
            samples("gpu_1min"),
            samples("host_1min")
        ),
        (70, 70, 70)
    );
}

#[test]
fn older_database_gets_columns_of_new_fields() {
    let folder = tempfile::tempdir().unwrap();
    write_buckets(folder.path(), [make_bucket(FIRST_MS, 1)]);
    Connection::open(folder.path().join(FILE_NAME))
        .unwrap()
        .execute_batch(
            "ALTER TABLE gpu_10s DROP COLUMN power_draw_watts; ALTER TABLE gpu_10s DROP COLUMN \
             power_draw_watts_min",
        )
        .unwrap();
    let request = SpanRequest {
        from_ms: FIRST_MS,
        to_ms: FIRST_MS + 60_000,
        points: 10,
        resolution_ms: None,
        wanted: MetricSelection::select_all(),
    };
    let read = |folder: &Path| {
        Database::open_to_read(folder)
            .unwrap()
            .read_span(&request)
            .unwrap()
    };
    let before = read(folder.path());
    assert!(
        !before.gpus[0].metrics.contains_key("power.draw_watts"),
        "it is read without them, too"
    );
    assert!(before.gpus[0].metrics.contains_key("memory.used_bytes"));
    write_buckets(folder.path(), [make_bucket(FIRST_MS + BUCKET_MS, 1)]);
    let watts_again = &read(folder.path()).gpus[0].metrics["power.draw_watts"];
    assert_eq!(
        watts_again.values,
        [
            None,
            Some(power_stat(&make_bucket(FIRST_MS + BUCKET_MS, 1)).mean)
        ]
    );
}

fn make_job(id: &str, uuid: &str, from_ms: u64, to_ms: u64) -> JobSpan {
    let [id, uuid] = [id, uuid].map(str::to_owned);
    JobSpan {
        kind: JobKind::Slurm,
        id,
        name: None,
        user: Some("ana".to_owned()),
        uuid,
        from_ms,
        to_ms,
        private: false,
    }
}

#[test]
fn running_job_updates_one_row_per_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let end = FIRST_MS + 60_000;
    let later = [
        make_job("88123", "GPU-a", FIRST_MS, end),
        make_job("88123", "GPU-b", FIRST_MS, end - 1),
        make_job("5", "GPU-a", 1, 2),
    ];
    let first = later.clone().map(|job| JobSpan {
        to_ms: job.from_ms,
        user: None,
        ..job
    });
    write_buckets(
        folder.path(),
        [
            Bucket {
                jobs: first.to_vec(),
                ..make_bucket(FIRST_MS, 1)
            },
            Bucket {
                jobs: later.to_vec(),
                ..make_bucket(FIRST_MS + BUCKET_MS, 1)
            },
        ],
    );
    let database = Database::open_to_read(folder.path()).unwrap();
    assert_eq!(
        database.read_jobs(None).unwrap(),
        later,
        "those that were seen last come first"
    );
    assert_eq!(database.read_jobs(Some("5")).unwrap(), later[2..]);
    assert_eq!(database.read_jobs(Some("88")).unwrap(), []);
}

#[test]
fn newer_or_foreign_database_is_not_changed() {
    for (sql, words) in [
        (
            "PRAGMA application_id = 0x67706d6e; PRAGMA user_version = 99",
            "written by a newer gpumon (its schema is 99",
        ),
        (
            "CREATE TABLE recipes (name)",
            "history.db belongs to another program",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        Connection::open(folder.path().join(FILE_NAME))
            .unwrap()
            .execute_batch(sql)
            .unwrap();
        let before = fs::read(folder.path().join(FILE_NAME)).unwrap();
        let (writer, reported) = start_writer(folder.path());
        let reported = reported.recv_timeout(Duration::from_mins(1)).unwrap();
        assert!(
            reported.contains(words) && reported.contains("another directory"),
            "{reported}"
        );
        assert!(writer.open_reader().unwrap().is_none());
        writer.add_bucket(make_bucket(FIRST_MS, 1));
        end_writer(&writer, folder.path());
        assert_eq!(fs::read(folder.path().join(FILE_NAME)).unwrap(), before);
    }
}

#[test]
fn stored_history_is_restored_after_restart() {
    let folder = tempfile::tempdir().unwrap();
    let now_ms = now_ms() / BUCKET_MS * BUCKET_MS;
    let (writer, _told) = start_writer(folder.path());
    writer.add_event(Event {
        at_ms: now_ms - 1,
        gpu: None,
        what: EventKind::Mark(Mark {
            text: "epoch 3".to_owned(),
            user: None,
        }),
    });
    writer.add_bucket(make_bucket(now_ms - BUCKET_MS, 1));
    end_writer(&writer, folder.path());
    let (hand_over, restored) = mpsc::channel();
    let settings = WriterSettings {
        folder: folder.path().to_owned(),
        size_bytes: SIZE_LIMIT,
    };
    let restore = move |restored: RestoredHistory| drop(hand_over.send(restored));
    let writer = Writer::start(settings, 600_000, restore, |problem| panic!("{problem}")).unwrap();
    let RestoredHistory { grid, events } = restored.recv_timeout(Duration::from_mins(1)).unwrap();
    assert!(
        matches!(&events[..], [Event { what: EventKind::Mark(mark), .. }] if mark.text == "epoch 3")
    );
    let minutes = grid.into_span(BUCKET_MS, |_| Device::default());
    assert_eq!(minutes.times_ms, [now_ms - BUCKET_MS]);
    end_writer(&writer, folder.path());
}

#[test]
fn size_limit_covers_all_tables_and_damaged_files() {
    let folder = tempfile::tempdir().unwrap();
    let now_ms = now_ms() / BUCKET_MS * BUCKET_MS;
    let span = |back: u64, to_ms: Option<u64>| {
        let kind = ConditionKind::PageRetirementPending;
        let (since_ms, text) = (now_ms - back * BUCKET_MS, "x".repeat(500));
        let condition = Condition {
            since_ms,
            severity: Severity::Warning,
            text,
            kind,
        };
        ConditionSpan {
            uuid: "GPU-a".to_owned(),
            from_ms: since_ms,
            to_ms,
            condition,
        }
    };
    let database = Database::open(folder.path()).unwrap();
    let conditions = (1..=2000)
        .rev()
        .map(|back| span(back, Some(now_ms - back * BUCKET_MS + 500)));
    let conditions = std::iter::once(span(2001, None))
        .chain(conditions)
        .collect();
    database
        .import_buckets(
            0,
            std::iter::once(Bucket {
                conditions,
                ..make_bucket(now_ms - BUCKET_MS, 1)
            }),
        )
        .unwrap();
    drop(database);
    let file = |name: &str| folder.path().join(name);
    let size_bytes = fs::metadata(file(FILE_NAME)).unwrap().len() * 3 / 4;
    let (old, new) = (
        "history.db.corrupt-1700000000000",
        "history.db.corrupt-1700000000001",
    );
    for name in [old, new, "history.db.corrupt-1700000000000-wal", "other"] {
        fs::write(file(name), vec![0; size_bytes as usize]).unwrap();
    }
    let run = |size_bytes| {
        let settings = WriterSettings {
            folder: folder.path().to_owned(),
            size_bytes,
        };
        let writer =
            Writer::start(settings, 600_000, |_| {}, |problem| panic!("{problem}")).unwrap();
        end_writer(&writer, folder.path());
    };
    run(size_bytes * 3);
    assert!(!file(old).exists() && file(new).exists() && file("other").exists());
    for _ in 0..100 {
        run(size_bytes);
    }
    let count = |which: &str| {
        query_value::<i64>(
            folder.path(),
            &format!("SELECT count(*) FROM condition WHERE {which}"),
        )
    };
    assert!(
        (500..1800).contains(&count("to_ms IS NOT NULL")),
        "{}",
        count("to_ms IS NOT NULL")
    );
    assert_eq!(
        count(&format!("from_ms = {}", now_ms - BUCKET_MS)),
        1,
        "the oldest go"
    );
    assert!(!file(new).exists() && file("other").exists());
    assert!(fs::metadata(file(FILE_NAME)).unwrap().len() <= size_bytes * 21 / 20);
}

#[test]
fn clock_years_ahead_does_not_delete_rows() {
    let folder = tempfile::tempdir().unwrap();
    let now_ms = now_ms() / BUCKET_MS * BUCKET_MS;
    // The newest row of the file is 400 days old.
    let ended_ms = (now_ms - 400 * 24 * 3_600_000) / 900_000 * 900_000;
    let database = Database::open(folder.path()).unwrap();
    for (tier, resolution_ms) in [(0, BUCKET_MS), (1, 60_000), (2, 900_000)] {
        let rows = (1..=300)
            .rev()
            .map(|back| make_bucket(ended_ms - back * resolution_ms, 2));
        database.import_buckets(tier, rows).unwrap();
    }
    let what = EventKind::Mark(Mark {
        text: "epoch".to_owned(),
        user: None,
    });
    let events = (1..=300).map(|back| Event {
        at_ms: ended_ms - back * 900_000,
        gpu: None,
        what: what.clone(),
    });
    database.import_events(events).unwrap();
    drop(database);
    let settings = WriterSettings {
        folder: folder.path().to_owned(),
        size_bytes: SIZE_LIMIT,
    };
    for start in 0..3 {
        let writer = Writer::start(
            settings.clone(),
            600_000,
            |_| {},
            |problem| panic!("{problem}"),
        )
        .unwrap();
        writer.add_bucket(make_bucket(now_ms + start * BUCKET_MS, 2));
        end_writer(&writer, folder.path());
    }
    let count = |table: &str| {
        query_value::<i64>(
            folder.path(),
            &format!("SELECT count(*) FROM {table} WHERE at_ms < {ended_ms}"),
        )
    };
    for table in ["host_10s", "host_1min", "host_15min", "event"] {
        assert_eq!(count(table), 300, "{table}");
    }
}

#[test]
fn clock_set_back_does_not_replace_older_row() {
    let folder = tempfile::tempdir().unwrap();
    let now_ms = now_ms() / 900_000 * 900_000;
    let past_ms = now_ms - 100 * 24 * 3_600_000;
    let database = Database::open(folder.path()).unwrap();
    let whole = Bucket {
        samples: 900,
        ..make_bucket(past_ms, 2)
    };
    database
        .import_buckets(2, std::iter::once(whole).chain([make_bucket(now_ms, 2)]))
        .unwrap();
    drop(database);
    let settings = WriterSettings {
        folder: folder.path().to_owned(),
        size_bytes: SIZE_LIMIT,
    };
    let writer = Writer::start(settings, 600_000, |_| {}, |problem| panic!("{problem}")).unwrap();
    (0..100).for_each(|at| writer.add_bucket(make_bucket(past_ms + at * BUCKET_MS, 2)));
    end_writer(&writer, folder.path());
    let sql = format!("SELECT samples FROM host_15min WHERE at_ms = {past_ms}");
    assert_eq!(query_value::<i64>(folder.path(), &sql), 900);
}

#[test]
fn old_rows_are_deleted_and_file_shrinks() {
    let folder = tempfile::tempdir().unwrap();
    let now_ms = now_ms() / BUCKET_MS * BUCKET_MS;
    let three_days = 3 * 24 * 3_600_000;
    write_buckets(folder.path(), [make_bucket(now_ms - three_days, 1)]);
    let database = Database::open(folder.path()).unwrap();
    database
        .import_buckets(
            0,
            (1..=2000)
                .rev()
                .map(|back| make_bucket(now_ms - back * BUCKET_MS, 2)),
        )
        .unwrap();
    drop(database);
    let bytes = || fs::metadata(folder.path().join(FILE_NAME)).unwrap().len();
    let before = bytes();
    let settings = WriterSettings {
        folder: folder.path().to_owned(),
        size_bytes: before / 2,
    };
    for minute in 0..130 {
        // Each start of a writer also deletes excess rows, which a running writer does only once a
        // minute.
        let writer = Writer::start(
            settings.clone(),
            600_000,
            |_| {},
            |problem| panic!("{problem}"),
        )
        .unwrap();
        writer.add_bucket(make_bucket(now_ms + minute * BUCKET_MS, 2));
        end_writer(&writer, folder.path());
    }
    assert!(
        bytes() <= before / 2 + before / 20,
        "{} of {before}",
        bytes()
    );
    let oldest: u64 = query_value::<i64>(folder.path(), "SELECT min(at_ms) FROM gpu_10s") as u64;
    assert!(
        oldest > now_ms - 2000 * BUCKET_MS && oldest < now_ms - 500 * BUCKET_MS,
        "{}",
        now_ms - oldest
    );
}
