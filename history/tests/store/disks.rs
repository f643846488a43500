//! Tests of full and read-only disks: readings are written once the disk works again, and the
//! stored history can be read meanwhile.

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
    database::{Database, FILE},
    plan::SpanRequest,
    wanted::Wanted,
    writer::{Settings, Writer},
};

use crate::{
    support::bucket,
    writing::{FIRST_MS, next, start, wait},
};

/// Runs the test again in a mount namespace with a disk of its own. Returns `false` inside this
/// namespace. The test fails on systems without namespaces, unless a variable allows skipping it.
fn within_own_disk(test: &str) -> bool {
    const INSIDE: &str = "GPUMON_TEST_DISK";
    const LEFT_OUT: &str = "GPUMON_TEST_NO_NAMESPACES";
    if env::var_os(INSIDE).is_some() {
        return false;
    }
    if env::var_os(LEFT_OUT).is_some() {
        eprintln!("{test} is left out: {LEFT_OUT} is set");
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
            .env(INSIDE, "1")
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
        "this system gives a test no disk of its own, allow user namespaces or set {LEFT_OUT}=1: {errors}"
    );
}

const FOLDER: &str = "/mnt/history";

/// Fills the disk until [`give_back`] is called.
fn fill() {
    let full = fs::write("/mnt/filler", vec![0; 8 << 20]).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
}

fn give_back() {
    fs::remove_file("/mnt/filler").unwrap();
}

fn remount(how: &str) {
    // The thread of a dropped writer closes its files a moment later.
    wait("nothing is open for writing", || {
        let done = Command::new("mount")
            .args(["-o", &format!("remount,{how}"), "/mnt"])
            .output()
            .unwrap();
        let is_busy = String::from_utf8_lossy(&done.stderr).contains("busy");
        assert!(done.status.success() || is_busy, "{done:?}");
        done.status.success()
    });
}

/// Copies the files of a writer in a consistent state, even if it still writes.
fn copy_at_one_moment(from: &Path, to: &Path) {
    let read = || {
        let files = [FILE, "history.db-wal", "history.db-shm", "history.lock"];
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

/// Returns the indexes of the buckets that are on disk.
fn written(database: &Database) -> Vec<u64> {
    let (wanted, _) = Wanted::named(["power.draw_watts"].into_iter());
    let request = SpanRequest {
        from_ms: FIRST_MS,
        to_ms: FIRST_MS + 5000 * BUCKET_MS - 1,
        points: 5000,
        resolution_ms: None,
        wanted,
    };
    let span = database.span(&request).unwrap();
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

fn add(writer: &Writer, buckets: Range<u64>) {
    buckets.for_each(|at| writer.add_bucket(bucket(FIRST_MS + at * BUCKET_MS, 2)));
}

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    if within_own_disk("disks::a_full_disk_is_told_and_loses_nothing") {
        return;
    }
    let folder = Path::new(FOLDER);
    let (writer, told) = start(folder);
    add(&writer, 0..20);
    wait("it is written", || {
        writer.status().written_ms == FIRST_MS + 20 * BUCKET_MS
    });
    fill();
    let mut end = 20;
    let problem = loop {
        // The pages of the file may still have room for some buckets.
        add(&writer, end..end + 1);
        end += 1;
        sleep(Duration::from_millis(5));
        if let Ok(problem) = told.try_recv() {
            break problem;
        }
        assert!(end < 4000, "the disk is never full");
    };
    assert!(
        problem.contains("the disk is full: free some space"),
        "{problem}"
    );
    // The problem is reported once, and adding buckets does not wait for the disk.
    let begun = Instant::now();
    add(&writer, end..end + 100);
    assert!(begun.elapsed() < Duration::from_mins(1));
    assert_eq!(told.try_iter().count(), 0);
    let on_disk = writer.status().written_ms;
    let known = written(&writer.reader().unwrap().expect("it can still be read"));
    assert_eq!(
        known.last().map(|at| FIRST_MS + (at + 1) * BUCKET_MS),
        Some(on_disk),
        "what is said to be there is"
    );
    give_back();
    writer.end();
    wait("all is written", || {
        writer.status().written_ms == FIRST_MS + (end + 100) * BUCKET_MS
    });
    assert_eq!(next(&told), format!("history is written to {FOLDER} again"));
    let database = Database::open_to_read(folder).unwrap();
    database.check_integrity().unwrap();
    assert_eq!(written(&database), (0..end + 100).collect::<Vec<_>>());
}

#[test]
fn what_is_there_is_read_where_the_disk_is_full_or_read_only_from_the_start() {
    if within_own_disk(
        "disks::what_is_there_is_read_where_the_disk_is_full_or_read_only_from_the_start",
    ) {
        return;
    }
    let folder = Path::new(FOLDER);
    for (at, words) in [
        (0, "the disk is full: free some space"),
        (1, "it is read-only: name another directory"),
    ] {
        let (writer, _told) = start(folder);
        let begun = at * 10;
        add(&writer, begun..begun + 5);
        writer.end();
        // These are the files of a process that was killed while it wrote.
        let killed = Path::new("/mnt").join(format!("killed-{at}"));
        fs::create_dir(&killed).unwrap();
        let (writer, _told) = start(folder);
        add(&writer, begun + 5..begun + 6);
        wait("it is written", || {
            writer.status().written_ms == FIRST_MS + (begun + 6) * BUCKET_MS
        });
        copy_at_one_moment(folder, &killed);
        writer.end();
        drop(writer);
        if at == 0 {
            fill();
        } else {
            remount("ro");
        }
        let known: Vec<_> = (0..=at).flat_map(|at| at * 10..at * 10 + 6).collect();
        for folder in [folder, &killed] {
            let (hand_over, restored) = mpsc::channel();
            let (tell, told) = mpsc::channel();
            let settings = Settings {
                folder: folder.to_owned(),
                size_bytes: 1 << 30,
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
                        told.try_iter().collect::<Vec<_>>()
                    )
                });
            wait("it can be read", || writer.status().is_readable);
            assert_eq!(written(&writer.reader().unwrap().unwrap()), known, "{what}");
            assert_eq!(
                written(&Database::open_to_read(folder).unwrap()),
                known,
                "{what}"
            );
            // On a full disk, the existing files may still have room for some buckets.
            let told = (begun + 6..begun + 300).find_map(|at| {
                add(&writer, at..at + 1);
                told.recv_timeout(Duration::from_millis(20)).ok()
            });
            assert!(
                told.as_ref().is_some_and(|told| told.contains(words)),
                "{what}: {told:?}"
            );
            assert!(writer.status().is_readable);
        }
        if at == 0 { give_back() } else { remount("rw") }
    }
}

#[test]
fn a_read_only_disk_is_told_and_what_was_read_meanwhile_is_written_behind_it() {
    if within_own_disk(
        "disks::a_read_only_disk_is_told_and_what_was_read_meanwhile_is_written_behind_it",
    ) {
        return;
    }
    let folder = Path::new(FOLDER);
    fs::create_dir(folder).unwrap();
    remount("ro");
    let (writer, told) = start(folder);
    let problem = next(&told);
    assert!(
        problem.contains("it is read-only: name another directory with --data-dir"),
        "{problem}"
    );
    add(&writer, 0..100);
    remount("rw");
    writer.end();
    wait("all is written", || {
        writer.status().written_ms == FIRST_MS + 100 * BUCKET_MS
    });
    assert_eq!(
        written(&Database::open_to_read(folder).unwrap()),
        (0..100).collect::<Vec<_>>()
    );
}
