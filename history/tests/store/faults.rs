//! Tests of disk faults: only the history on disk is affected, each fault is reported once, and
//! data is written when the disk works again.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use gpumon_history::{
    bucket::{BUCKET_MS, Bucket},
    database::{Database, FILE_NAME},
    memory::REACH_MS,
    span::{MetricSelection, SpanRequest},
};
use gpumon_probe::model::{Event, EventKind, Mark};
use rusqlite::Connection;
use rustix::process::geteuid;

use crate::{
    support::make_bucket,
    writing::{
        FIRST_MS, end_writer, make_condition, make_mark, receive_message, start_writer, wait_until,
    },
};

#[test]
fn hours_of_buckets_are_written_after_disk_fault() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("history");
    fs::write(&own, "in the place of the directory").unwrap();
    let (writer, reported) = start_writer(&own);
    assert!(receive_message(&reported).contains("the directory cannot be created"));
    let (hours, reach) = (2400, REACH_MS / BUCKET_MS);
    (0..hours).for_each(|at| writer.add_bucket(make_bucket(FIRST_MS + at * BUCKET_MS, 1)));
    let mark = |at_ms| Event {
        at_ms,
        gpu: None,
        what: EventKind::Mark(Mark {
            text: "epoch 3".to_owned(),
            user: None,
        }),
    };
    let last_ms = FIRST_MS + (hours - 1) * BUCKET_MS;
    writer.add_event(mark(last_ms));
    assert_eq!(
        writer.status().written_ms,
        0,
        "nothing is said to be on disk that is not"
    );
    fs::remove_file(&own).unwrap();
    end_writer(&writer, &own);
    let end_ms = FIRST_MS + hours * BUCKET_MS;
    wait_until("all of it is written", || {
        writer.status().written_ms == end_ms
    });
    let database = Database::open_to_read(&own).unwrap();
    let oldest_ms = database.list_tiers().unwrap()[0].1.oldest_ms;
    assert!(
        oldest_ms <= end_ms - reach * BUCKET_MS,
        "as much as memory keeps"
    );
    let (wanted, _) = MetricSelection::parse_names(["power.draw_watts"].into_iter());
    let request = SpanRequest {
        from_ms: oldest_ms,
        to_ms: end_ms - 1,
        points: 5000,
        resolution_ms: None,
        wanted,
    };
    let span = database.read_span(&request).unwrap();
    let rows = ((end_ms - oldest_ms) / BUCKET_MS) as usize;
    assert_eq!(
        (span.resolution_ms, span.times_ms.len(), span.events),
        (BUCKET_MS, rows, vec![mark(last_ms)])
    );
    assert!(
        span.gpus[0].metrics["power.draw_watts"]
            .values
            .iter()
            .all(Option::is_some)
    );
    assert_eq!(span.gpus[0].name.as_deref(), Some("NVIDIA H200"));
}

#[test]
fn second_server_does_not_write_to_history_directory() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _told) = start_writer(folder.path());
    wait_until("the first opens it", || first.status().is_readable);
    let (second, reported) = start_writer(folder.path());
    let reported = receive_message(&reported);
    assert!(
        reported.contains("another gpumon server writes its history to this directory")
            && reported.contains("keeps 6 hours of history in memory"),
        "{reported}"
    );
    // Another machine's history must not be read through a network file system.
    let lock = folder.path().join("history.lock");
    let own = fs::read(&lock).unwrap();
    fs::write(&lock, "another-machine").unwrap();
    let (third, reported) = start_writer(folder.path());
    let reported = receive_message(&reported);
    assert!(
        reported.contains("gpumon on another-machine writes its history to the same directory")
            && reported.contains("choose a local directory"),
        "{reported}"
    );
    assert!(third.open_reader().unwrap().is_none());
    fs::write(&lock, own).unwrap();
    second.add_bucket(make_bucket(FIRST_MS, 1));
    second.finish_writing();
    first.add_bucket(make_bucket(FIRST_MS + BUCKET_MS, 1));
    wait_until("the first writes", || {
        first.status().written_ms > FIRST_MS + BUCKET_MS
    });
    let tiers = second
        .open_reader()
        .unwrap()
        .expect("the second reads what the first writes")
        .list_tiers()
        .unwrap();
    assert_eq!(
        tiers[0].1.oldest_ms,
        FIRST_MS + BUCKET_MS,
        "and has written nothing"
    );
}

#[test]
fn successor_of_history_writer_does_not_duplicate_rows() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _told) = start_writer(folder.path());
    wait_until("the first opens it", || first.status().is_readable);
    let (second, reported) = start_writer(folder.path());
    assert!(
        receive_message(&reported)
            .contains("another gpumon server writes its history to this directory")
    );
    let of_gpu = |at_ms| Event {
        at_ms,
        gpu: None,
        what: EventKind::MigChanged,
    };
    for at in 0..100 {
        let at_ms = FIRST_MS + at * BUCKET_MS;
        first.add_bucket(make_bucket(at_ms, 2));
        first.add_event(of_gpu(at_ms));
        // This condition has been recorded only by the second process.
        let conditions = if at == 5 {
            vec![make_condition(at_ms + 7)]
        } else {
            Vec::new()
        };
        second.add_bucket(Bucket {
            conditions,
            ..make_bucket(at_ms, 2)
        });
        second.add_event(of_gpu(at_ms + 3));
    }
    second.add_event(make_mark(FIRST_MS + 500));
    wait_until("the first writes", || {
        first.status().written_ms == FIRST_MS + 100 * BUCKET_MS
    });
    end_writer(&first, folder.path());
    second.add_bucket(make_bucket(FIRST_MS + 100 * BUCKET_MS, 2));
    second.add_event(of_gpu(FIRST_MS + 100 * BUCKET_MS));
    end_writer(&second, folder.path());
    wait_until("the second writes", || {
        second.status().written_ms == FIRST_MS + 101 * BUCKET_MS
    });
    let database = Connection::open(folder.path().join(FILE_NAME)).unwrap();
    let number = |sql: &str| {
        database
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    assert_eq!(
        (
            number("SELECT count(*) FROM gpu_10s"),
            number("SELECT max(samples) FROM gpu_10s")
        ),
        (202, 10)
    );
    assert_eq!(
        number("SELECT count(*) FROM event WHERE kind = 'mig_changed'"),
        101
    );
    assert_eq!(
        number("SELECT count(*) FROM event WHERE kind = 'mark'"),
        1,
        "the other one was not told of it"
    );
    assert_eq!(
        number("SELECT count(*) FROM condition WHERE to_ms IS NULL"),
        1,
        "what is the matter still is"
    );
}

#[test]
fn condition_continues_after_disk_fault() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reported) = start_writer(folder.path());
    writer.add_bucket(Bucket {
        conditions: vec![make_condition(FIRST_MS)],
        ..make_bucket(FIRST_MS, 1)
    });
    wait_until("it is written", || writer.status().written_ms > FIRST_MS);
    // A missing table is an error, but not damage.
    let other = Connection::open(folder.path().join(FILE_NAME)).unwrap();
    other
        .execute_batch("ALTER TABLE gpu_10s RENAME TO elsewhere")
        .unwrap();
    writer.add_bucket(make_bucket(FIRST_MS + BUCKET_MS, 1));
    assert!(receive_message(&reported).contains("no such table"));
    other
        .execute_batch("ALTER TABLE elsewhere RENAME TO gpu_10s")
        .unwrap();
    end_writer(&writer, folder.path());
    wait_until("it is written again", || {
        writer.status().written_ms > FIRST_MS + BUCKET_MS
    });
    let open = "SELECT count(*) FROM condition WHERE to_ms IS NULL";
    assert_eq!(
        other
            .query_row(open, [], |row| row.get::<_, i64>(0))
            .unwrap(),
        1
    );
    // The next process ends the condition, because that process has not detected the condition
    // itself.
    let (writer, _told) = start_writer(folder.path());
    wait_until("it is opened", || writer.status().is_readable);
    assert_eq!(
        other
            .query_row(open, [], |row| row.get::<_, i64>(0))
            .unwrap(),
        0
    );
}

#[test]
fn unusable_directory_is_reported_with_cure() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let (_writer, reported) = start_writer(&folder.path().join("file/history"));
    let reported = receive_message(&reported);
    assert!(
        reported.contains("the directory cannot be created") && reported.contains("--data-dir"),
        "{reported}"
    );
    // Root can write to every directory, so root cannot run this check.
    if !geteuid().is_root() {
        let closed = folder.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o500)).unwrap();
        let (_writer, reported) = start_writer(&closed);
        assert!(receive_message(&reported).contains("check its owner and permissions"));
    }
}

#[test]
fn history_directory_and_files_are_private() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("state/gpumon");
    let (writer, _told) = start_writer(&own);
    wait_until("it is made", || writer.status().is_readable);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&own), 0o700);
    for file in fs::read_dir(&own).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn deleted_directory_is_created_again() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("history");
    let (writer, _told) = start_writer(&own);
    writer.add_bucket(make_bucket(FIRST_MS, 1));
    wait_until("it is written", || writer.status().written_ms > FIRST_MS);
    fs::remove_dir_all(&own).unwrap();
    writer.add_bucket(make_bucket(FIRST_MS + BUCKET_MS, 1));
    wait_until("it is written again", || {
        writer.status().written_ms > FIRST_MS + BUCKET_MS
    });
    end_writer(&writer, &own);
    assert_eq!(
        Database::open_to_read(&own)
            .unwrap()
            .list_tiers()
            .unwrap()
            .len(),
        1
    );
}
