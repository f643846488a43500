//! Tests that a process can be killed at any moment while it writes, without losing written rows or
//! damaging the file.

use std::{
    env,
    io::{self, BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    thread::sleep,
    time::Duration,
};

use gpumon_history::{
    bucket::BUCKET_MS,
    database::{Database, TIERS},
    span::{MetricSelection, SpanRequest},
    writer::{Writer, WriterSettings},
};

use crate::{
    damage::assert_intact,
    support::{make_bucket, pseudorandom_number},
    writing::{FIRST_MS, SIZE_LIMIT},
};

/// The environment variable that makes this program act as the writer. Its value is the directory.
const FOLDER_VARIABLE: &str = "GPUMON_TEST_FOLDER";

/// Returns the number of times to kill the writer. `make test-full` sets this to 500.
fn kill_count() -> u64 {
    if env::var_os("GPUMON_TEST_FULL").is_some() {
        500
    } else {
        40
    }
}

/// Writes one bucket after another, and prints which buckets are on disk, until the process is
/// killed.
fn write_until_killed(folder: &Path) -> ! {
    let restored = |_| {};
    let settings = WriterSettings {
        folder: folder.to_owned(),
        size_bytes: SIZE_LIMIT,
    };
    let writer = Writer::start(settings, 600_000, restored, |problem| panic!("{problem}")).unwrap();
    while !writer.status().is_readable {
        sleep(Duration::from_micros(100));
    }
    let last = check_and_find_newest(folder).map_or(FIRST_MS, |newest| newest + BUCKET_MS);
    for at_ms in (last..).step_by(BUCKET_MS as usize) {
        println!("added {at_ms}");
        writer.add_bucket(make_bucket(at_ms, 2));
        while writer.status().written_ms <= at_ms {
            sleep(Duration::from_micros(50));
        }
        println!("written {at_ms}");
    }
    unreachable!("time has no end");
}

/// Checks that no row is missing, and returns the time of the newest row.
fn check_and_find_newest(folder: &Path) -> Option<u64> {
    let database = Database::open_to_read(folder).unwrap();
    let (wanted, _) =
        MetricSelection::parse_names(["power.draw_watts", "host.cpu.busy_percent"].into_iter());
    let tiers = database.list_tiers().unwrap();
    let (_, finest) = tiers.first()?;
    let request = |from_ms, to_ms| SpanRequest {
        from_ms,
        to_ms,
        points: 5000,
        resolution_ms: None,
        wanted: wanted.clone(),
    };
    let whole = database
        .read_span(&request(
            finest.oldest_ms,
            finest.oldest_ms + 5000 * BUCKET_MS - 1,
        ))
        .unwrap();
    assert_eq!(whole.resolution_ms, BUCKET_MS);
    for gpu in &whole.gpus {
        assert!(
            gpu.metrics["power.draw_watts"]
                .values
                .iter()
                .all(Option::is_some),
            "a bucket is there as a whole or not"
        );
    }
    assert!(
        whole.host["host.cpu.busy_percent"]
            .values
            .iter()
            .all(Option::is_some),
        "none is missing between others"
    );
    let newest = *whole.times_ms.last()?;
    for (number, tier) in &tiers {
        // The coarser tiers must also be complete: each row must exist once its period has ended.
        let points = ((newest - finest.oldest_ms) / tier.resolution_ms + 2) as u32;
        let span = database
            .read_span(&SpanRequest {
                points,
                ..request(finest.oldest_ms, newest)
            })
            .unwrap();
        assert!(
            span.host["host.cpu.busy_percent"]
                .values
                .iter()
                .all(Option::is_some),
            "{span:?}"
        );
        assert!(
            tier.oldest_ms <= finest.oldest_ms
                && tier.resolution_ms == TIERS[*number].resolution_ms
        );
    }
    Some(newest)
}

fn reports_added_bucket(line: &io::Result<String>) -> bool {
    line.as_ref().is_ok_and(|line| line.contains("added "))
}

#[test]
fn killed_writer_loses_no_written_bucket() {
    if let Some(folder) = env::var_os(FOLDER_VARIABLE) {
        write_until_killed(Path::new(&folder));
    }
    let mut folder = tempfile::tempdir().unwrap();
    // The newest bucket that was on disk after the previous kill.
    let mut known = None;
    let (mut most_lost, mut all, mut without_file) = (0, 0, 0);
    for kill in 0..kill_count() {
        // A new file is started regularly, because large files take longer to check.
        if kill % 25 == 0 {
            (folder, known) = (tempfile::tempdir().unwrap(), None);
        }
        let mut child = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "killed::killed_writer_loses_no_written_bucket",
                "--nocapture",
            ])
            .env(FOLDER_VARIABLE, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Some processes are killed early, while they create or recover the file.
        let is_early = kill.is_multiple_of(5);
        let begun = (!is_early).then(|| lines.find(reports_added_bucket));
        let wait = if is_early { 5.0 } else { 150.0 } * pseudorandom_number([kill, 1, 2]);
        sleep(Duration::from_micros((wait * 1000.0) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        let lines = begun.flatten().into_iter().chain(lines);
        let reported: Vec<_> = lines.map_while(Result::ok).collect();
        let newest_reported = |word: &str| {
            let reported = reported
                .iter()
                .filter_map(|line| line.split_once(word)?.1.trim().parse::<u64>().ok());
            reported.max()
        };
        let (added, written) = (newest_reported("added "), newest_reported("written "));
        all += reported
            .iter()
            .filter(|line| line.contains("written "))
            .count() as u64;
        if !folder.path().join("history.db").exists() {
            assert_eq!(
                (known, written),
                (None, None),
                "a file that was there is there"
            );
            without_file += 1;
            continue;
        }
        // The next process would open the file in this way.
        let opened = Database::open(folder.path());
        opened.unwrap_or_else(|error| {
            panic!("kill {kill} leaves a file that cannot be opened: {error}")
        });
        assert_intact(folder.path());
        let newest = check_and_find_newest(folder.path());
        assert!(
            newest >= written.max(known),
            "{newest:?} is on disk, and {written:?} was said to be, {known:?} was"
        );
        // The writer adds a bucket only after the previous bucket is on disk.
        let lost = added.map_or(0, |added| {
            (added + BUCKET_MS).saturating_sub(newest.map_or(FIRST_MS, |at| at + BUCKET_MS))
        });
        most_lost = most_lost.max(lost);
        known = newest;
    }
    eprintln!(
        "{} kills, {all} buckets, {most_lost} ms lost at most, {without_file} before there was a \
         file",
        kill_count()
    );
    assert!(all > kill_count(), "{all} buckets were written in all");
    assert!(most_lost <= BUCKET_MS, "{most_lost} ms lost");
    assert!(
        without_file < kill_count() / 4,
        "most are killed while there is a file"
    );
}
