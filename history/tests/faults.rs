//! A disk that does not work costs history on disk, and nothing else: each fault is told once, in words, and what works
//! again is written again.

#[allow(dead_code, reason = "each test uses some of it")]
mod support;

use std::{
    env,
    fs::{self, Permissions},
    io::ErrorKind,
    ops::Range,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
    sync::mpsc::{self, Receiver},
    thread::sleep,
    time::{Duration, Instant},
};

use gpumon_history::{
    bucket::{BUCKET_MS, Bucket},
    database::{Database, DatabaseError, FILE},
    grid::Grid,
    memory::REACH_MS,
    plan::SpanRequest,
    span::ConditionSpan,
    wanted::Wanted,
    writer::{Settings, Writer},
};
use gpumon_probe::model::{Condition, ConditionKind, Event, EventKind, Mark, Run, RunKind, RunStatus, Severity};
use rusqlite::Connection;
use rustix::process::geteuid;

use support::bucket;

const FIRST_MS: u64 = 1_800_000_000_000;

fn start(folder: &Path) -> (Writer, Receiver<String>) {
    let (tell, told) = mpsc::channel();
    let settings = Settings { folder: folder.to_owned(), size_bytes: 1 << 30 };
    let writer = Writer::start(settings, 600_000, |_| {}, move |problem| drop(tell.send(problem.to_owned()))).unwrap();
    (writer, told)
}

fn next(told: &Receiver<String>) -> String {
    told.recv_timeout(Duration::from_secs(30)).unwrap()
}

fn mark(at_ms: u64) -> Event {
    Event { at_ms, gpu: None, what: EventKind::Mark(Mark { text: "epoch 3".to_owned(), user: None }) }
}

fn condition(from_ms: u64) -> ConditionSpan {
    let kind = ConditionKind::PageRetirementPending;
    let condition = Condition { since_ms: from_ms, severity: Severity::Warning, text: "Pending".to_owned(), kind };
    ConditionSpan { uuid: "GPU-a".to_owned(), from_ms, to_ms: None, condition }
}

fn wait(what: &str, is_so: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < patience, "{what}");
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_damaged_file_is_moved_aside_and_a_new_one_begun() {
    for damage in ["no database", "a damaged page"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        let (writer, _told) = start(folder.path());
        (0..200).for_each(|at| writer.add_bucket(bucket(FIRST_MS + at * BUCKET_MS, 2)));
        wait("they are written", || writer.status().written_ms >= FIRST_MS + 200 * BUCKET_MS);
        writer.end();
        let mut bytes = fs::read(&file).unwrap();
        if damage == "no database" {
            bytes = b"nothing that SQLite knows".repeat(1000);
        } else {
            let middle = bytes.len() / 2;
            bytes[8192..middle].fill(0xa5);
        }
        fs::write(&file, &bytes).unwrap();
        let (writer, told) = start(folder.path());
        (200..230).for_each(|at| writer.add_bucket(bucket(FIRST_MS + at * BUCKET_MS, 2)));
        let told = next(&told);
        assert!(told.contains("was damaged: it is kept as history.db.corrupt-"), "{damage}: {told}");
        wait("it is written again", || writer.status().problem.is_none() && writer.status().is_readable);
        writer.end();
        Database::open_to_read(folder.path()).unwrap().check_integrity().unwrap();
        let kept = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let kept = kept
            .filter(|path| path.to_string_lossy().contains(".corrupt-") && !path.to_string_lossy().contains("-wal"));
        assert!(kept.map(|path| fs::read(path).unwrap()).any(|kept| kept == bytes), "{damage}: it is kept as it was");
    }
}

/// Writes rows of hours, with an event, and closes the file.
fn write_hours(folder: &Path, buckets: u64) {
    let (writer, _told) = start(folder);
    writer.add_event(mark(FIRST_MS));
    (0..buckets).for_each(|at| writer.add_bucket(bucket(FIRST_MS + at * BUCKET_MS, 2)));
    wait("they are written", || writer.status().written_ms >= FIRST_MS + buckets * BUCKET_MS);
    writer.end();
}

/// Fills pages of a database with what is none of SQLite's.
fn damage(folder: &Path, pages: impl Iterator<Item = u64>) {
    let mut bytes = fs::read(folder.join(FILE)).unwrap();
    pages.for_each(|page| bytes[(page as usize - 1) * 8192..page as usize * 8192].fill(0xa5));
    fs::write(folder.join(FILE), &bytes).unwrap();
}

/// Everything that a reader reads, tier by tier.
fn read_all(database: &Database) -> Result<(), DatabaseError> {
    let request =
        SpanRequest { from_ms: FIRST_MS, to_ms: u64::MAX >> 1, points: 1, resolution_ms: None, wanted: Wanted::all() };
    let mut grid = Grid::new(FIRST_MS, u64::MAX >> 1, 3_600_000, Wanted::all());
    for (tier, _) in database.tiers()? {
        database.add_to(&mut grid, tier)?;
    }
    database.span(&request).map(|_| ())
}

#[test]
fn whichever_page_is_damaged_a_new_file_is_begun_by_whoever_meets_it() {
    let whole = tempfile::tempdir().unwrap();
    write_hours(whole.path(), 200);
    let schema = Connection::open(whole.path().join(FILE)).unwrap();
    let mut roots = schema.prepare("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0").unwrap();
    let roots = roots.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))).unwrap();
    let roots: Vec<_> = roots.map(Result::unwrap).chain([("the first page".to_owned(), 1)]).collect();
    assert!(roots.len() > 12, "{roots:?}");
    for (name, page) in roots {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(whole.path().join(FILE), folder.path().join(FILE)).unwrap();
        damage(folder.path(), [page as u64].into_iter());
        let (writer, told) = start(folder.path());
        let run = Run {
            run: "another".to_owned(),
            kind: RunKind::Bench,
            title: "copy".to_owned(),
            step: None,
            status: RunStatus::Running,
        };
        writer.add_event(Event { what: EventKind::RunBegan(run), ..mark(FIRST_MS + 399 * BUCKET_MS) });
        // Half an hour makes rows of all tiers, so that the writer meets each of them that no reader does.
        (200..400).for_each(|at| writer.add_bucket(bucket(FIRST_MS + at * BUCKET_MS, 1)));
        writer.add_bucket(Bucket { conditions: vec![condition(FIRST_MS)], ..bucket(FIRST_MS + 400 * BUCKET_MS, 1) });
        let end_ms = FIRST_MS + 401 * BUCKET_MS;
        wait(&name, || writer.status().written_ms == end_ms && writer.status().problem.is_none());
        let reader = writer.reader().unwrap().expect("it can be read");
        if let Err(error) = read_all(&reader) {
            writer.reading_failed(&reader, &error);
        }
        drop(reader);
        let told = told.recv_timeout(Duration::from_secs(30)).unwrap_or_else(|_| panic!("{name} is met by nobody"));
        assert!(told.contains("was damaged: it is kept as history.db.corrupt-"), "{name}: {told}");
        wait(&name, || writer.reader().unwrap().is_some_and(|reader| read_all(&reader).is_ok()));
        writer.end();
    }
}

#[test]
fn what_can_be_read_of_a_damaged_file_is_in_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (1000, 30);
    write_hours(folder.path(), first);
    let pages = fs::metadata(folder.path().join(FILE)).unwrap().len() / 8192;
    damage(folder.path(), (1..8).map(|part| pages * part / 8));
    let (writer, told) = start(folder.path());
    (first..first + second).for_each(|at| writer.add_bucket(bucket(FIRST_MS + at * BUCKET_MS, 2)));
    wait("what is new is written", || writer.status().written_ms == FIRST_MS + (first + second) * BUCKET_MS);
    let reader = writer.reader().unwrap().expect("it can be read");
    if let Err(error) = read_all(&reader) {
        writer.reading_failed(&reader, &error);
        // What it says of a file that is no longer there is not taken for news.
        wait("it is put aside", || writer.status().is_readable && read_all(&reader).is_err());
        writer.reading_failed(&reader, &error);
    }
    drop(reader);
    let told: Vec<_> = std::iter::repeat_with(|| next(&told)).take(2).collect();
    assert!(
        told[0].contains("was damaged") && told[1].contains("could be read and are in history.db again"),
        "{told:?}"
    );
    writer.end();
    let database = Connection::open(folder.path().join(FILE)).unwrap();
    let count = |table: &str| {
        database.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0)).unwrap() as u64
    };
    // Seven pages have some hundred rows at most.
    let all = first + second;
    assert!((all - 100..=all).contains(&count("host_10s")), "{}", count("host_10s"));
    assert!((2 * all - 100..=2 * all).contains(&count("gpu_10s")), "{}", count("gpu_10s"));
    let minutes = count("host_1min");
    assert!((all / 6 - 20..=all / 6).contains(&minutes), "{minutes}");
    assert_eq!(count("gpu_10s JOIN device ON device.id = device WHERE name = 'NVIDIA H200'"), count("gpu_10s"));
    assert_eq!((count("device"), count("event")), (2, 1));
    Database::open_to_read(folder.path()).unwrap().check_integrity().unwrap();
}

#[test]
fn what_a_disk_does_not_take_for_hours_is_written_when_it_works_again() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("history");
    fs::write(&own, "in the place of the directory").unwrap();
    let (writer, told) = start(&own);
    assert!(next(&told).contains("the directory cannot be made"));
    let (hours, reach) = (2400, REACH_MS / BUCKET_MS);
    (0..hours).for_each(|at| writer.add_bucket(bucket(FIRST_MS + at * BUCKET_MS, 1)));
    let mark =
        |at_ms| Event { at_ms, gpu: None, what: EventKind::Mark(Mark { text: "epoch 3".to_owned(), user: None }) };
    let last_ms = FIRST_MS + (hours - 1) * BUCKET_MS;
    writer.add_event(mark(last_ms));
    assert_eq!(writer.status().written_ms, 0, "nothing is said to be on disk that is not");
    fs::remove_file(&own).unwrap();
    writer.end();
    let end_ms = FIRST_MS + hours * BUCKET_MS;
    wait("all of it is written", || writer.status().written_ms == end_ms);
    let database = Database::open_to_read(&own).unwrap();
    let oldest_ms = database.tiers().unwrap()[0].1.oldest_ms;
    assert!(oldest_ms <= end_ms - reach * BUCKET_MS, "as much as memory keeps");
    let (wanted, _) = Wanted::named(["power.draw_watts"].into_iter());
    let request = SpanRequest { from_ms: oldest_ms, to_ms: end_ms - 1, points: 5000, resolution_ms: None, wanted };
    let span = database.span(&request).unwrap();
    let rows = ((end_ms - oldest_ms) / BUCKET_MS) as usize;
    assert_eq!((span.resolution_ms, span.times_ms.len(), span.events), (BUCKET_MS, rows, vec![mark(last_ms)]));
    assert!(span.gpus[0].metrics["power.draw_watts"].values.iter().all(Option::is_some));
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
        told.contains("another gpumon writes its history there") && told.contains("kept in memory for 6 hours"),
        "{told}"
    );
    // What another machine writes over a network is not read.
    let lock = folder.path().join("history.lock");
    let own = fs::read(&lock).unwrap();
    fs::write(&lock, "another-machine").unwrap();
    let (third, told) = start(folder.path());
    let told = next(&told);
    assert!(told.contains("the gpumon of another-machine writes") && told.contains("of this machine"), "{told}");
    assert!(third.reader().unwrap().is_none());
    fs::write(&lock, own).unwrap();
    second.add_bucket(bucket(FIRST_MS, 1));
    second.end();
    first.add_bucket(bucket(FIRST_MS + BUCKET_MS, 1));
    wait("the first writes", || first.status().written_ms > FIRST_MS + BUCKET_MS);
    let tiers = second.reader().unwrap().expect("the second reads what the first writes").tiers().unwrap();
    assert_eq!(tiers[0].1.oldest_ms, FIRST_MS + BUCKET_MS, "and has written nothing");
}

#[test]
fn whoever_takes_over_a_folder_writes_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _told) = start(folder.path());
    wait("the first opens it", || first.status().is_readable);
    let (second, told) = start(folder.path());
    assert!(next(&told).contains("another gpumon writes its history there"));
    let of_gpu = |at_ms| Event { at_ms, gpu: None, what: EventKind::MigChanged };
    for at in 0..100 {
        let at_ms = FIRST_MS + at * BUCKET_MS;
        first.add_bucket(bucket(at_ms, 2));
        first.add_event(of_gpu(at_ms));
        // Both have seen it, a little apart.
        let conditions = if at == 5 { vec![condition(at_ms + 7)] } else { Vec::new() };
        second.add_bucket(Bucket { conditions, ..bucket(at_ms, 2) });
        second.add_event(of_gpu(at_ms + 3));
    }
    second.add_event(mark(FIRST_MS + 500));
    wait("the first writes", || first.status().written_ms == FIRST_MS + 100 * BUCKET_MS);
    first.end();
    second.add_bucket(bucket(FIRST_MS + 100 * BUCKET_MS, 2));
    second.add_event(of_gpu(FIRST_MS + 100 * BUCKET_MS));
    second.end();
    wait("the second writes", || second.status().written_ms == FIRST_MS + 101 * BUCKET_MS);
    let database = Connection::open(folder.path().join(FILE)).unwrap();
    let number = |sql: &str| database.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!((number("SELECT count(*) FROM gpu_10s"), number("SELECT max(samples) FROM gpu_10s")), (202, 10));
    assert_eq!(number("SELECT count(*) FROM event WHERE kind = 'mig_changed'"), 101);
    assert_eq!(number("SELECT count(*) FROM event WHERE kind = 'mark'"), 1, "the other one was not told of it");
    assert_eq!(number("SELECT count(*) FROM condition WHERE to_ms IS NULL"), 1, "what is the matter still is");
}

#[test]
fn what_is_the_matter_goes_on_when_a_disk_works_again() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, told) = start(folder.path());
    writer.add_bucket(Bucket { conditions: vec![condition(FIRST_MS)], ..bucket(FIRST_MS, 1) });
    wait("it is written", || writer.status().written_ms > FIRST_MS);
    // A table that is gone is an error, and no damage.
    let other = Connection::open(folder.path().join(FILE)).unwrap();
    other.execute_batch("ALTER TABLE gpu_10s RENAME TO elsewhere").unwrap();
    writer.add_bucket(bucket(FIRST_MS + BUCKET_MS, 1));
    assert!(next(&told).contains("no such table"));
    other.execute_batch("ALTER TABLE elsewhere RENAME TO gpu_10s").unwrap();
    writer.end();
    wait("it is written again", || writer.status().written_ms > FIRST_MS + BUCKET_MS);
    let open = "SELECT count(*) FROM condition WHERE to_ms IS NULL";
    assert_eq!(other.query_row(open, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
    // The next program knows that it was not there to see its end.
    let (writer, _told) = start(folder.path());
    wait("it is opened", || writer.status().is_readable);
    assert_eq!(other.query_row(open, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[test]
fn a_folder_that_is_no_folder_or_not_ours_is_told_with_its_cure() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let (_writer, told) = start(&folder.path().join("file/history"));
    let told = next(&told);
    assert!(told.contains("the directory cannot be made") && told.contains("--data-dir"), "{told}");
    // Root may everything.
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

/// Where a test needs a disk of its own, it runs again in a namespace that has one; false where it is there. A system that
/// gives no namespace fails it, unless it is told so.
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
    for unshare in [&["unshare", "--user", "--map-root-user"][..], &["sudo", "-n", "-E", "unshare"]] {
        let run = Command::new(unshare[0])
            .args(&unshare[1..])
            .args(["--mount", "sh", "-ec", script])
            .arg(env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(INSIDE, "1")
            .output();
        match run {
            Ok(run) if run.status.success() => return true,
            Ok(run) => errors += &String::from_utf8_lossy(&run.stderr),
            Err(error) => errors += &error.to_string(),
        }
        assert!(!errors.contains("panicked"), "{errors}");
    }
    panic!("this system gives a test no disk of its own, allow user namespaces or set {LEFT_OUT}=1: {errors}");
}

const FOLDER: &str = "/mnt/history";

/// Takes all that is left of the disk, until it is given back.
fn fill() {
    let full = fs::write("/mnt/filler", vec![0; 8 << 20]).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
}

fn give_back() {
    fs::remove_file("/mnt/filler").unwrap();
}

fn remount(how: &str) {
    let done = Command::new("mount").args(["-o", &format!("remount,{how}"), "/mnt"]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// Which ten seconds are on disk, counted from the first.
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
    let known = span.times_ms.iter().zip(values).filter(|(_, watts)| watts.is_some());
    known.map(|(at_ms, _)| (at_ms - FIRST_MS) / BUCKET_MS).collect()
}

fn add(writer: &Writer, buckets: Range<u64>) {
    buckets.for_each(|at| writer.add_bucket(bucket(FIRST_MS + at * BUCKET_MS, 2)));
}

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    if within_own_disk("a_full_disk_is_told_and_loses_nothing") {
        return;
    }
    let folder = Path::new(FOLDER);
    let (writer, told) = start(folder);
    add(&writer, 0..20);
    wait("it is written", || writer.status().written_ms == FIRST_MS + 20 * BUCKET_MS);
    fill();
    let mut end = 20;
    let problem = loop {
        // Some have room in pages that are there already.
        add(&writer, end..end + 1);
        end += 1;
        sleep(Duration::from_millis(5));
        if let Ok(problem) = told.try_recv() {
            break problem;
        }
        assert!(end < 4000, "the disk is never full");
    };
    assert!(problem.contains("the disk is full: free some space"), "{problem}");
    // It is told once, and nothing waits for it.
    let begun = Instant::now();
    add(&writer, end..end + 100);
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(told.try_iter().count(), 0);
    let on_disk = writer.status().written_ms;
    let known = written(&writer.reader().unwrap().expect("it can still be read"));
    assert_eq!(known.last().map(|at| FIRST_MS + (at + 1) * BUCKET_MS), Some(on_disk), "what is said to be there is");
    give_back();
    writer.end();
    wait("all is written", || writer.status().written_ms == FIRST_MS + (end + 100) * BUCKET_MS);
    assert_eq!(next(&told), format!("history is written to {FOLDER} again"));
    let database = Database::open_to_read(folder).unwrap();
    database.check_integrity().unwrap();
    assert_eq!(written(&database), (0..end + 100).collect::<Vec<_>>());
}

#[test]
fn what_is_there_is_read_where_the_disk_is_full_or_read_only_from_the_start() {
    if within_own_disk("what_is_there_is_read_where_the_disk_is_full_or_read_only_from_the_start") {
        return;
    }
    let folder = Path::new(FOLDER);
    for (at, words) in [(0, "the disk is full: free some space"), (1, "it is read-only: name another directory")] {
        let (writer, _told) = start(folder);
        let begun = at * 10;
        add(&writer, begun..begun + 5);
        writer.end();
        // What a program leaves that was killed while it wrote.
        let killed = Path::new("/mnt").join(format!("killed-{at}"));
        fs::create_dir(&killed).unwrap();
        let (writer, _told) = start(folder);
        add(&writer, begun + 5..begun + 6);
        wait("it is written", || writer.status().written_ms == FIRST_MS + (begun + 6) * BUCKET_MS);
        for file in [FILE, "history.db-wal", "history.db-shm", "history.lock"] {
            fs::copy(folder.join(file), killed.join(file)).unwrap();
        }
        writer.end();
        drop(writer);
        if at == 0 {
            fill()
        } else {
            remount("ro")
        }
        let known: Vec<_> = (0..=at).flat_map(|at| at * 10..at * 10 + 6).collect();
        for folder in [folder, &killed] {
            let (hand_over, restored) = mpsc::channel();
            let (tell, told) = mpsc::channel();
            let settings = Settings { folder: folder.to_owned(), size_bytes: 1 << 30 };
            let restore = move |restored| drop(hand_over.send(restored));
            let tell = move |problem: &str| drop(tell.send(problem.to_owned()));
            let writer = Writer::start(settings, 600_000, restore, tell).unwrap();
            restored.recv_timeout(Duration::from_secs(30)).expect("what was there is handed over");
            let what = folder.display();
            wait("it can be read", || writer.status().is_readable);
            assert_eq!(written(&writer.reader().unwrap().unwrap()), known, "{what}");
            assert_eq!(written(&Database::open_to_read(folder).unwrap()), known, "{what}");
            // A full disk may have room for some, in files that are there already.
            let told = (begun + 6..begun + 300).find_map(|at| {
                add(&writer, at..at + 1);
                told.recv_timeout(Duration::from_millis(20)).ok()
            });
            assert!(told.as_ref().is_some_and(|told| told.contains(words)), "{what}: {told:?}");
            assert!(writer.status().is_readable);
        }
        if at == 0 { give_back() } else { remount("rw") }
    }
}

#[test]
fn a_read_only_disk_is_told_and_what_was_read_meanwhile_is_written_behind_it() {
    if within_own_disk("a_read_only_disk_is_told_and_what_was_read_meanwhile_is_written_behind_it") {
        return;
    }
    let folder = Path::new(FOLDER);
    fs::create_dir(folder).unwrap();
    remount("ro");
    let (writer, told) = start(folder);
    let problem = next(&told);
    assert!(problem.contains("it is read-only: name another directory with --data-dir"), "{problem}");
    add(&writer, 0..100);
    remount("rw");
    writer.end();
    wait("all is written", || writer.status().written_ms == FIRST_MS + 100 * BUCKET_MS);
    assert_eq!(written(&Database::open_to_read(folder).unwrap()), (0..100).collect::<Vec<_>>());
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
    wait("it is written again", || writer.status().written_ms > FIRST_MS + BUCKET_MS);
    writer.end();
    assert_eq!(Database::open_to_read(&own).unwrap().tiers().unwrap().len(), 1);
}
