//! Tests of full and read-only disks: readings are written as soon as the disk works again, and the
//! stored history remains readable meanwhile.

use std::{
    env, fs,
    io::ErrorKind,
    ops::Range,
    path::Path,
    process::Command,
    sync::mpsc,
    thread::sleep,
    time::{Duration, Instant},
};

use gpumon_history::{
    bucket::BUCKET_MS,
    database::{Database, FILE_NAME},
    span::{MetricSelection, SpanRequest},
    writer::{Writer, WriterSettings},
};

use crate::{
    damage::assert_intact,
    support::make_bucket,
    writing::{FIRST_MS, SIZE_LIMIT, end_writer, receive_message, start_writer, wait_until},
};

/// Runs the named test again in a mount namespace with a disk of its own, and returns `true`.
/// Returns `false` if already inside such a namespace. On systems without namespaces, the test
/// fails unless an environment variable skips it.
fn run_in_namespace(test: &str) -> bool {
    const INSIDE_VARIABLE: &str = "GPUMON_TEST_DISK";
    const SKIP_VARIABLE: &str = "GPUMON_TEST_NO_NAMESPACES";
    if env::var_os(INSIDE_VARIABLE).is_some() {
        return false;
    }
    if env::var_os(SKIP_VARIABLE).is_some() {
        eprintln!("{test} is left out: {SKIP_VARIABLE} is set");
        return true;
    }
    let script = "mount -t tmpfs -o size=4m tmpfs /mnt; exec \"$0\" \"$@\"";
    let mut errors = String::new();
    for unshare in [
        &["unshare", "--user", "--map-root-user"][..],
        &["sudo", "-n", "-E", "unshare"],
    ] {
        let run = Command::new(unshare[0])
            .args(&unshare[1..])
            .args(["--mount", "sh", "-ec", script])
            .arg(env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(INSIDE_VARIABLE, "1")
            .output();
        match run {
            Ok(run) if run.status.success() => {
                let printed = String::from_utf8_lossy(&run.stdout);
                assert!(
                    printed.contains("1 passed"),
                    "there is no test {test}: {printed}"
                );
                return true;
            }
            Ok(run) => errors += &String::from_utf8_lossy(&run.stderr),
            Err(error) => errors += &error.to_string(),
        }
        assert!(!errors.contains("panicked"), "{errors}");
    }
    panic!(
        "this system gives a test no disk of its own, allow user namespaces or set \
         {SKIP_VARIABLE}=1: {errors}"
    );
}

const FOLDER: &str = "/mnt/history";

/// Fills the disk until [`free_disk`] is called.
fn fill_disk() {
    let full = fs::write("/mnt/filler", vec![0; 8 << 20]).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
}

fn free_disk() {
    fs::remove_file("/mnt/filler").unwrap();
}

fn remount_disk(how: &str) {
    // After a writer is dropped, its thread needs a moment to close its files.
    wait_until("nothing is open for writing", || {
        let done = Command::new("mount")
            .args(["-o", &format!("remount,{how}"), "/mnt"])
            .output()
            .unwrap();
        let is_busy = String::from_utf8_lossy(&done.stderr).contains("busy");
        assert!(done.status.success() || is_busy, "{done:?}");
        done.status.success()
    });
}

/// Copies a writer's files in a consistent state, even while it is writing.
fn copy_consistent_state(from: &Path, to: &Path) {
    let read = || {
        let files = [
            FILE_NAME,
            "history.db-wal",
            "history.db-shm",
            "history.lock",
        ];
        files.map(|file| (file, fs::read(from.join(file)).unwrap()))
    };
    let mut files = read();
    loop {
        let again = read();
        if files == again {
            break;
        }
        files = again;
    }
    for (file, bytes) in files {
        fs::write(to.join(file), bytes).unwrap();
    }
}

/// Returns the indexes of the buckets on disk.
fn list_written_buckets(database: &Database) -> Vec<u64> {
    let (wanted, _) = MetricSelection::parse_names(["power.draw_watts"].into_iter());
    let request = SpanRequest {
        from_ms: FIRST_MS,
        to_ms: FIRST_MS + 5000 * BUCKET_MS - 1,
        points: 5000,
        resolution_ms: None,
        wanted,
    };
    let span = database.read_span(&request).unwrap();
    let values = &span.gpus[0].metrics["power.draw_watts"].values;
    let known = span
        .times_ms
        .iter()
        .zip(values)
        .filter(|(_, watts)| watts.is_some());
    known
        .map(|(at_ms, _)| (at_ms - FIRST_MS) / BUCKET_MS)
        .collect()
}

fn add_buckets(writer: &Writer, buckets: Range<u64>) {
    buckets.for_each(|at| writer.add_bucket(make_bucket(FIRST_MS + at * BUCKET_MS, 2)));
}

#[test]
fn full_disk_is_reported_and_loses_nothing() {
    if run_in_namespace("disks::full_disk_is_reported_and_loses_nothing") {
        return;
    }
    let folder = Path::new(FOLDER);
    let (writer, reported) = start_writer(folder);
    add_buckets(&writer, 0..20);
    wait_until("it is written", || {
        writer.status().written_ms == FIRST_MS + 20 * BUCKET_MS
    });
    fill_disk();
    let mut end = 20;
    let problem = loop {
        // Even on a full disk, the file's pages may have room for some buckets.
        add_buckets(&writer, end..end + 1);
        end += 1;
        sleep(Duration::from_millis(5));
        if let Ok(problem) = reported.try_recv() {
            break problem;
        }
        assert!(end < 4000, "the disk is never full");
    };
    assert!(
        problem.contains("the disk is full: free some space"),
        "{problem}"
    );
    // The problem is reported only once, and adding buckets does not wait for the disk.
    let begun = Instant::now();
    add_buckets(&writer, end..end + 100);
    assert!(begun.elapsed() < Duration::from_mins(1));
    assert_eq!(reported.try_iter().count(), 0);
    let on_disk = writer.status().written_ms;
    let known = list_written_buckets(&writer.open_reader().unwrap().expect("it can still be read"));
    assert_eq!(
        known.last().map(|at| FIRST_MS + (at + 1) * BUCKET_MS),
        Some(on_disk),
        "what is said to be there is"
    );
    free_disk();
    end_writer(&writer, folder);
    wait_until("all is written", || {
        writer.status().written_ms == FIRST_MS + (end + 100) * BUCKET_MS
    });
    assert_eq!(
        receive_message(&reported),
        format!("history is written to {FOLDER} again")
    );
    let database = Database::open_to_read(folder).unwrap();
    assert_intact(folder);
    assert_eq!(
        list_written_buckets(&database),
        (0..end + 100).collect::<Vec<_>>()
    );
}

#[test]
fn history_is_readable_on_unwritable_disk() {
    if run_in_namespace("disks::history_is_readable_on_unwritable_disk") {
        return;
    }
    let folder = Path::new(FOLDER);
    for (at, words) in [
        (0, "the disk is full: free some space"),
        (1, "the directory is read-only: choose another"),
    ] {
        let (writer, _told) = start_writer(folder);
        let begun = at * 10;
        add_buckets(&writer, begun..begun + 5);
        end_writer(&writer, folder);
        // The copied files are like the files of a process that was killed while writing.
        let killed = Path::new("/mnt").join(format!("killed-{at}"));
        fs::create_dir(&killed).unwrap();
        let (writer, _told) = start_writer(folder);
        add_buckets(&writer, begun + 5..begun + 6);
        wait_until("it is written", || {
            writer.status().written_ms == FIRST_MS + (begun + 6) * BUCKET_MS
        });
        copy_consistent_state(folder, &killed);
        end_writer(&writer, folder);
        drop(writer);
        if at == 0 {
            fill_disk();
        } else {
            remount_disk("ro");
        }
        let known: Vec<_> = (0..=at).flat_map(|at| at * 10..at * 10 + 6).collect();
        for folder in [folder, &killed] {
            let (hand_over, restored) = mpsc::channel();
            let (tell, reported) = mpsc::channel();
            let settings = WriterSettings {
                folder: folder.to_owned(),
                size_bytes: SIZE_LIMIT,
            };
            let restore = move |restored| drop(hand_over.send(restored));
            let tell = move |problem: &str| drop(tell.send(problem.to_owned()));
            let writer = Writer::start(settings, 600_000, restore, tell).unwrap();
            let what = folder.display();
            restored
                .recv_timeout(Duration::from_mins(1))
                .unwrap_or_else(|_| {
                    panic!(
                        "what was in {what} is not handed over: {:?}",
                        reported.try_iter().collect::<Vec<_>>()
                    )
                });
            wait_until("it can be read", || writer.status().is_readable);
            assert_eq!(
                list_written_buckets(&writer.open_reader().unwrap().unwrap()),
                known,
                "{what}"
            );
            assert_eq!(
                list_written_buckets(&Database::open_to_read(folder).unwrap()),
                known,
                "{what}"
            );
            // On a full disk, the existing files may still have room for some buckets.
            let reported = (begun + 6..begun + 300).find_map(|at| {
                add_buckets(&writer, at..at + 1);
                reported.recv_timeout(Duration::from_millis(20)).ok()
            });
            assert!(
                reported
                    .as_ref()
                    .is_some_and(|reported| reported.contains(words)),
                "{what}: {reported:?}"
            );
            assert!(writer.status().is_readable);
        }
        if at == 0 {
            free_disk();
        } else {
            remount_disk("rw");
        }
    }
}

#[test]
fn readings_are_written_after_disk_becomes_writable() {
    if run_in_namespace("disks::readings_are_written_after_disk_becomes_writable") {
        return;
    }
    let folder = Path::new(FOLDER);
    fs::create_dir(folder).unwrap();
    remount_disk("ro");
    let (writer, reported) = start_writer(folder);
    let problem = receive_message(&reported);
    assert!(
        problem.contains("the directory is read-only: choose another with --data-dir"),
        "{problem}"
    );
    add_buckets(&writer, 0..100);
    remount_disk("rw");
    end_writer(&writer, folder);
    wait_until("all is written", || {
        writer.status().written_ms == FIRST_MS + 100 * BUCKET_MS
    });
    assert_eq!(
        list_written_buckets(&Database::open_to_read(folder).unwrap()),
        (0..100).collect::<Vec<_>>()
    );
}
