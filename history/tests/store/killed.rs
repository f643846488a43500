//! Tests of a process that is killed at any moment while it writes: neither written rows nor the
//! file are lost.

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
    plan::SpanRequest,
    wanted::Wanted,
    writer::{Settings, Writer},
};

use crate::support::{bucket, noise};

/// The variable that makes this program the writer, with its directory.
const FOLDER: &str = "GPUMON_TEST_FOLDER";

/// Returns the number of kills. `make test-full` makes 500.
fn kills() -> u64 {
    if env::var_os("GPUMON_TEST_FULL").is_some() {
        500
    } else {
        40
    }
}

/// The start of the first bucket, a multiple of the coarsest tier's resolution.
const FIRST_MS: u64 = 1_800_000_000_000;

/// Writes one bucket after the other, and prints which ones are on disk, until the process is
/// killed.
fn write(folder: &Path) -> ! {
    let restored = |_| {};
    let settings = Settings {
        folder: folder.to_owned(),
        size_bytes: 1 << 30,
    };
    let writer = Writer::start(settings, 600_000, restored, |problem| panic!("{problem}")).unwrap();
    while !writer.status().is_readable {
        sleep(Duration::from_micros(100));
    }
    let last = newest(folder).map_or(FIRST_MS, |newest| newest + BUCKET_MS);
    for at_ms in (last..).step_by(BUCKET_MS as usize) {
        println!("added {at_ms}");
        writer.add_bucket(bucket(at_ms, 2));
        while writer.status().written_ms <= at_ms {
            sleep(Duration::from_micros(50));
        }
        println!("written {at_ms}");
    }
    unreachable!("time has no end");
}

/// Checks that no row is missing, and returns the time of the newest one.
fn newest(folder: &Path) -> Option<u64> {
    let database = Database::open_to_read(folder).unwrap();
    let (wanted, _) = Wanted::named(["power.draw_watts", "host.cpu.busy_percent"].into_iter());
    let tiers = database.tiers().unwrap();
    let (_, finest) = tiers.first()?;
    let request = |from_ms, to_ms| SpanRequest {
        from_ms,
        to_ms,
        points: 5000,
        resolution_ms: None,
        wanted: wanted.clone(),
    };
    let whole = database
        .span(&request(
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
        // The coarser tiers must also be complete: each row exists once its time is over.
        let points = ((newest - finest.oldest_ms) / tier.resolution_ms + 2) as u32;
        let span = database
            .span(&SpanRequest {
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

fn is_added(line: &io::Result<String>) -> bool {
    line.as_ref().is_ok_and(|line| line.contains("added "))
}

#[test]
fn whoever_is_killed_while_writing_loses_nothing_that_was_written() {
    if let Some(folder) = env::var_os(FOLDER) {
        write(Path::new(&folder));
    }
    let mut folder = tempfile::tempdir().unwrap();
    // The newest bucket after the previous kills.
    let mut known = None;
    let (mut most_lost, mut all, mut without_file) = (0, 0, 0);
    for kill in 0..kills() {
        // A new file is started regularly, because large files take longer to check.
        if kill % 25 == 0 {
            (folder, known) = (tempfile::tempdir().unwrap(), None);
        }
        let mut child = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "killed::whoever_is_killed_while_writing_loses_nothing_that_was_written",
                "--nocapture",
            ])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Some processes are killed early, while they create or recover the file.
        let is_early = kill.is_multiple_of(5);
        let begun = (!is_early).then(|| lines.find(is_added));
        let wait = if is_early { 5.0 } else { 150.0 } * noise([kill, 1, 2]);
        sleep(Duration::from_micros((wait * 1000.0) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        let lines = begun.flatten().into_iter().chain(lines);
        let told: Vec<_> = lines.map_while(Result::ok).collect();
        let newest_told = |word: &str| {
            let told = told
                .iter()
                .filter_map(|line| line.split_once(word)?.1.trim().parse::<u64>().ok());
            told.max()
        };
        let (added, written) = (newest_told("added "), newest_told("written "));
        all += told.iter().filter(|line| line.contains("written ")).count() as u64;
        if !folder.path().join("history.db").exists() {
            assert_eq!(
                (known, written),
                (None, None),
                "a file that was there is there"
            );
            without_file += 1;
            continue;
        }
        // The next process opens the file in the same way.
        let opened = Database::open(folder.path());
        opened.unwrap_or_else(|error| {
            panic!("kill {kill} leaves a file that cannot be opened: {error}")
        });
        let database = Database::open_to_read(folder.path()).unwrap();
        database.check_integrity().unwrap();
        let newest = newest(folder.path());
        assert!(
            newest >= written.max(known),
            "{newest:?} is on disk, and {written:?} was said to be, {known:?} was"
        );
        // A bucket is added only when the previous one is on disk.
        let lost = added.map_or(0, |added| {
            (added + BUCKET_MS).saturating_sub(newest.map_or(FIRST_MS, |at| at + BUCKET_MS))
        });
        most_lost = most_lost.max(lost);
        known = newest;
    }
    eprintln!(
        "{} kills, {all} buckets, {most_lost} ms lost at most, {without_file} before there was a file",
        kills()
    );
    assert!(all > kills(), "{all} buckets were written in all");
    assert!(most_lost <= BUCKET_MS, "{most_lost} ms lost");
    assert!(
        without_file < kills() / 4,
        "most are killed while there is a file"
    );
}
