//! Tests of disks that do not work: only history on disk is affected, each fault is reported once,
//! and data is written when the disk works again.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use gpumon_history::{
    bucket::{BUCKET_MS, Bucket},
    database::{Database, FILE},
    memory::REACH_MS,
    plan::SpanRequest,
    wanted::Wanted,
};
use gpumon_probe::model::{Event, EventKind, Mark};
use rusqlite::Connection;
use rustix::process::geteuid;

use crate::{
    support::bucket,
    writing::{FIRST_MS, condition, mark, next, start, wait},
};

#[test]
fn what_a_disk_does_not_take_for_hours_is_written_when_it_works_again() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("history");
    fs::write(&own, "in the place of the directory").unwrap();
    let (writer, told) = start(&own);
    assert!(next(&told).contains("the directory cannot be created"));
    let (hours, reach) = (2400, REACH_MS / BUCKET_MS);
    (0..hours).for_each(|at| writer.add_bucket(bucket(FIRST_MS + at * BUCKET_MS, 1)));
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
    writer.end();
    let end_ms = FIRST_MS + hours * BUCKET_MS;
    wait("all of it is written", || {
        writer.status().written_ms == end_ms
    });
    let database = Database::open_to_read(&own).unwrap();
    let oldest_ms = database.tiers().unwrap()[0].1.oldest_ms;
    assert!(
        oldest_ms <= end_ms - reach * BUCKET_MS,
        "as much as memory keeps"
    );
    let (wanted, _) = Wanted::named(["power.draw_watts"].into_iter());
    let request = SpanRequest {
        from_ms: oldest_ms,
        to_ms: end_ms - 1,
        points: 5000,
        resolution_ms: None,
        wanted,
    };
    let span = database.span(&request).unwrap();
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
fn two_programs_do_not_write_into_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _told) = start(folder.path());
    wait("the first opens it", || first.status().is_readable);
    let (second, told) = start(folder.path());
    let told = next(&told);
    assert!(
        told.contains("another gpumon writes its history there")
            && told.contains("kept in memory for 6 hours"),
        "{told}"
    );
    // The history of another machine must not be read through a network file system.
    let lock = folder.path().join("history.lock");
    let own = fs::read(&lock).unwrap();
    fs::write(&lock, "another-machine").unwrap();
    let (third, told) = start(folder.path());
    let told = next(&told);
    assert!(
        told.contains("the gpumon of another-machine writes") && told.contains("of this machine"),
        "{told}"
    );
    assert!(third.reader().unwrap().is_none());
    fs::write(&lock, own).unwrap();
    second.add_bucket(bucket(FIRST_MS, 1));
    second.end();
    first.add_bucket(bucket(FIRST_MS + BUCKET_MS, 1));
    wait("the first writes", || {
        first.status().written_ms > FIRST_MS + BUCKET_MS
    });
    let tiers = second
        .reader()
        .unwrap()
        .expect("the second reads what the first writes")
        .tiers()
        .unwrap();
    assert_eq!(
        tiers[0].1.oldest_ms,
        FIRST_MS + BUCKET_MS,
        "and has written nothing"
    );
}

#[test]
fn whoever_takes_over_a_folder_writes_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _told) = start(folder.path());
    wait("the first opens it", || first.status().is_readable);
    let (second, told) = start(folder.path());
    assert!(next(&told).contains("another gpumon writes its history there"));
    let of_gpu = |at_ms| Event {
        at_ms,
        gpu: None,
        what: EventKind::MigChanged,
    };
    for at in 0..100 {
        let at_ms = FIRST_MS + at * BUCKET_MS;
        first.add_bucket(bucket(at_ms, 2));
        first.add_event(of_gpu(at_ms));
        // Only the second process has seen this condition.
        let conditions = if at == 5 {
            vec![condition(at_ms + 7)]
        } else {
            Vec::new()
        };
        second.add_bucket(Bucket {
            conditions,
            ..bucket(at_ms, 2)
        });
        second.add_event(of_gpu(at_ms + 3));
    }
    second.add_event(mark(FIRST_MS + 500));
    wait("the first writes", || {
        first.status().written_ms == FIRST_MS + 100 * BUCKET_MS
    });
    first.end();
    second.add_bucket(bucket(FIRST_MS + 100 * BUCKET_MS, 2));
    second.add_event(of_gpu(FIRST_MS + 100 * BUCKET_MS));
    second.end();
    wait("the second writes", || {
        second.status().written_ms == FIRST_MS + 101 * BUCKET_MS
    });
    let database = Connection::open(folder.path().join(FILE)).unwrap();
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
fn what_is_the_matter_goes_on_when_a_disk_works_again() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, told) = start(folder.path());
    writer.add_bucket(Bucket {
        conditions: vec![condition(FIRST_MS)],
        ..bucket(FIRST_MS, 1)
    });
    wait("it is written", || writer.status().written_ms > FIRST_MS);
    // A missing table is an error, but no damage.
    let other = Connection::open(folder.path().join(FILE)).unwrap();
    other
        .execute_batch("ALTER TABLE gpu_10s RENAME TO elsewhere")
        .unwrap();
    writer.add_bucket(bucket(FIRST_MS + BUCKET_MS, 1));
    assert!(next(&told).contains("no such table"));
    other
        .execute_batch("ALTER TABLE elsewhere RENAME TO gpu_10s")
        .unwrap();
    writer.end();
    wait("it is written again", || {
        writer.status().written_ms > FIRST_MS + BUCKET_MS
    });
    let open = "SELECT count(*) FROM condition WHERE to_ms IS NULL";
    assert_eq!(
        other
            .query_row(open, [], |row| row.get::<_, i64>(0))
            .unwrap(),
        1
    );
    // The next process did not see the condition, and ends it.
    let (writer, _told) = start(folder.path());
    wait("it is opened", || writer.status().is_readable);
    assert_eq!(
        other
            .query_row(open, [], |row| row.get::<_, i64>(0))
            .unwrap(),
        0
    );
}

#[test]
fn a_folder_that_is_no_folder_or_not_ours_is_told_with_its_cure() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let (_writer, told) = start(&folder.path().join("file/history"));
    let told = next(&told);
    assert!(
        told.contains("the directory cannot be created") && told.contains("--data-dir"),
        "{told}"
    );
    // Root can write to any directory.
    if !geteuid().is_root() {
        let closed = folder.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o500)).unwrap();
        let (_writer, told) = start(&closed);
        assert!(next(&told).contains("check owner and permissions"));
    }
}

#[test]
fn the_folder_is_this_users_alone() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("state/gpumon");
    let (writer, _told) = start(&own);
    wait("it is made", || writer.status().is_readable);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&own), 0o700);
    for file in fs::read_dir(&own).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn a_folder_that_is_gone_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("history");
    let (writer, _told) = start(&own);
    writer.add_bucket(bucket(FIRST_MS, 1));
    wait("it is written", || writer.status().written_ms > FIRST_MS);
    fs::remove_dir_all(&own).unwrap();
    writer.add_bucket(bucket(FIRST_MS + BUCKET_MS, 1));
    wait("it is written again", || {
        writer.status().written_ms > FIRST_MS + BUCKET_MS
    });
    writer.end();
    assert_eq!(
        Database::open_to_read(&own).unwrap().tiers().unwrap().len(),
        1
    );
}
