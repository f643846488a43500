//! Tests of writing, truncating, damaging, rotating and reading recordings.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use flate2::{Compression, write::GzEncoder};
use gpumon_probe::{
    model::{EventKind, Reading, Record, Vendor},
    owner::CommandLines,
    sampler::{self, Options},
    vendor::SourceChoice,
};
use tempfile::TempDir;

use super::{block::Head, *};

pub(crate) const FIRST: u64 = 1_700_000_000_000;

fn inventory() -> String {
    r#"{"type":"inventory","at_ms":5,"hostname":"lab","gpus":[]}"#.to_owned()
}

fn sample(second: u64) -> String {
    format!(
        r#"{{"type":"sample","seq":{second},"at_ms":{}}}"#,
        FIRST + second * 1000
    )
}

fn push(writer: &mut Writer, record: &str) {
    let (kind, at_ms) = stamp(record).unwrap();
    writer.push(record, kind, at_ms, Instant::now());
}

/// Writes samples one second apart, in blocks of ten, with the inventory in the first block.
fn recorded(folder: &TempDir, samples: u64, limits: Limits) -> PathBuf {
    let path = folder.path().join("a.gz");
    let mut files = Files::create(&path, limits, false).unwrap();
    files.set_opening(pack_record(&inventory()));
    let mut writer = Writer::default();
    push(&mut writer, &inventory());
    for second in 0..samples {
        if second % 10 == 9 {
            push(
                &mut writer,
                &format!(
                    r#"{{"type":"details","index":0,"at_ms":{}}}"#,
                    FIRST + second * 1000
                ),
            );
        }
        push(&mut writer, &sample(second));
        if second % 10 == 9 {
            files.write(&writer.take().unwrap()).unwrap();
        }
    }
    if let Some(block) = writer.take() {
        files.write(&block).unwrap();
    }
    assert!(writer.take().is_none() && writer.due().is_none());
    path
}

/// Returns all records of a recording in order.
fn records(recording: &Recording) -> Vec<String> {
    let blocks = (0..recording.blocks()).map(|block| recording.read(block).unwrap());
    blocks
        .flat_map(|lines| {
            lines
                .lines()
                .iter()
                .map(|line| lines.text(line).to_owned())
                .collect::<Vec<_>>()
        })
        .collect()
}

fn seconds(recording: &Recording) -> Vec<u64> {
    let all = records(recording);
    let samples = all
        .iter()
        .filter(|record| record.contains(r#""type":"sample""#));
    samples
        .map(|record| (stamp(record).unwrap().1 - FIRST) / 1000)
        .collect()
}

fn message(path: &Path) -> String {
    Recording::open(path)
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

#[test]
fn what_was_recorded_is_read_and_any_gzip_prints_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = recorded(&folder, 25, Limits::default());
    let recording = Recording::open(&path).unwrap();
    assert_eq!(
        (recording.samples(), recording.blocks(), recording.cuts()),
        (25, 3, &[][..])
    );
    assert_eq!(recording.times_ms(), (FIRST, FIRST + 24_000));
    assert_eq!(seconds(&recording), (0..25).collect::<Vec<_>>());
    let mut text = String::new();
    let mut gzip = flate2::read::MultiGzDecoder::new(fs::File::open(&path).unwrap());
    std::io::Read::read_to_string(&mut gzip, &mut text).unwrap();
    assert_eq!(
        text.lines().map(str::to_owned).collect::<Vec<_>>(),
        records(&recording)
    );
    assert_eq!(recording.within(&(FIRST + 10_000..FIRST + 11_000)), [1]);
    assert_eq!(recording.inventory_before(2).unwrap(), Some(inventory()));
    assert_eq!(recording.inventory_before(0).unwrap(), None);
}

#[test]
fn a_recording_that_was_cut_anywhere_is_read_to_its_last_block() {
    let folder = tempfile::tempdir().unwrap();
    let path = recorded(&folder, 40, Limits::default());
    let whole = fs::read(&path).unwrap();
    let recording = Recording::open(&path).unwrap();
    let ends: Vec<usize> = (0..4)
        .scan(0, |end, block| {
            *end += recording.head(block).bytes as usize;
            Some(*end)
        })
        .collect();
    for length in 1..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let blocks = ends.iter().filter(|end| **end <= length).count();
        match Recording::open(&path) {
            Ok(cut) => {
                assert_eq!(cut.samples(), blocks * 10, "{length} bytes");
                let is_whole = ends.contains(&length);
                assert_eq!(cut.cuts().len(), usize::from(!is_whole), "{length} bytes");
                if let [cut] = cut.cuts() {
                    assert!(
                        cut.is_at_end && cut.bytes as usize == length - ends[blocks - 1],
                        "{cut:?}"
                    );
                    assert_eq!(cut.after_ms, FIRST + blocks as u64 * 10_000 - 1000);
                }
            }
            Err(error) => assert_eq!(blocks, 0, "{length} bytes: {error}"),
        }
    }
}

#[test]
fn what_is_damaged_costs_its_block_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = recorded(&folder, 40, Limits::default());
    let mut bytes = fs::read(&path).unwrap();
    let second = Recording::open(&path).unwrap().head(0).bytes as usize;
    // A change in the text of a block is detected by its checksum.
    bytes[second + block::HEAD + 20] ^= 0xff;
    fs::write(&path, &bytes).unwrap();
    let recording = Recording::open(&path).unwrap();
    assert!(
        recording
            .read(1)
            .unwrap_err()
            .to_string()
            .contains("damaged")
    );
    assert!(recording.read(2).is_ok());
    let mut player = Player::new(recording);
    let mut shown = Vec::new();
    let mut errors = 0;
    while !player.is_over() {
        match player.step(true) {
            Ok(told) => shown.extend(told),
            Err(_) => errors += 1,
        }
    }
    assert_eq!(errors, 1, "it goes on behind the damage");
    assert_eq!(
        shown
            .iter()
            .filter(|one| matches!(one, Played::Record(text) if text.contains("sample")))
            .count(),
        30
    );
    // If the head of a block is damaged, the next block is still found.
    bytes[second] = 0;
    fs::write(&path, &bytes).unwrap();
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.samples(), 30);
    assert!(
        matches!(recording.cuts(), [cut] if !cut.is_at_end && cut.after_ms == FIRST + 9_000),
        "{:?}",
        recording.cuts()
    );
    // A disk that loses power can leave zeros.
    bytes[..second].fill(0);
    fs::write(&path, &bytes).unwrap();
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.samples(), 20);
    assert!(
        matches!(recording.cuts(), [cut] if cut.after_ms == 0),
        "{:?}",
        recording.cuts()
    );
}

#[test]
fn what_was_read_before_the_damage_is_shown_before_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = recorded(&folder, 20, Limits::default());
    let mut bytes = fs::read(&path).unwrap();
    let second = Recording::open(&path).unwrap().head(0).bytes as usize;
    bytes[second + block::HEAD + 20] ^= 0xff;
    fs::write(&path, &bytes).unwrap();
    let mut player = Player::open(&path).unwrap();
    player.set_speed(1000.0);
    let later = Instant::now() + Duration::from_mins(1);
    let shown = player.advance(later).unwrap();
    assert_eq!(
        shown
            .iter()
            .filter(|one| matches!(one, Played::Record(text) if text.contains("sample")))
            .count(),
        10
    );
    assert!(
        player
            .advance(later)
            .unwrap_err()
            .to_string()
            .contains("damaged")
    );
    assert!(player.is_over());
}

#[test]
fn full_files_are_numbered_and_belong_to_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits {
        bytes: Some(400),
        keep: Some(3),
        time: None,
    };
    let path = recorded(&folder, 100, limits);
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["a.gz", "a.gz.1", "a.gz.2", "a.gz.3"]);
    for name in &names {
        let part = folder.path().join(name);
        assert!(fs::metadata(&part).unwrap().len() <= 400, "{name:?}");
        let first = Recording::open(&part).map(|part| records(&part)[0].clone());
        assert_eq!(
            first.unwrap_or_else(|error| panic!("{error}")),
            inventory(),
            "each can be read alone"
        );
    }
    let all = seconds(&Recording::open(&path).unwrap());
    let newest: Vec<u64> = (100 - all.len() as u64..100).collect();
    assert_eq!(
        all, newest,
        "in the order in which they were recorded, without a gap"
    );
}

#[test]
fn nothing_is_overwritten_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let path = recorded(&folder, 10, Limits::default());
    let error = |path: &Path, overwrite| {
        Files::create(path, Limits::default(), overwrite)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert!(error(&path, false).contains("--force"));
    assert_eq!(Recording::open(&path).unwrap().samples(), 10);
    let older = folder.path().join("b.gz.1");
    fs::copy(&path, &older).unwrap();
    assert!(error(&folder.path().join("b.gz"), false).contains("b.gz.1 exists"));
    fs::write(&older, "a letter").unwrap();
    assert!(error(&folder.path().join("b.gz"), true).contains("not a recording"));
    assert_eq!(fs::read(&older).unwrap(), b"a letter");
    let first = Files::create(&path, Limits::default(), true).unwrap();
    assert!(error(&path, true).contains("another gpumon"));
    drop(first);
    assert!(error(&folder.path().join("none/c.gz"), false).contains("create its folder"));
    let null = Files::create(
        Path::new("/dev/null"),
        Limits {
            bytes: Some(1),
            ..Limits::default()
        },
        false,
    );
    assert!(
        null.err()
            .unwrap()
            .to_string()
            .contains("cannot be rotated")
    );
}

#[test]
fn records_of_collect_are_a_recording_also_compressed_by_somebody_else() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, packed) = (folder.path().join("a.ndjson"), folder.path().join("b.gz"));
    let source = SourceChoice::Sim(1)
        .open(&gpumon_probe::vendor::Roots::default())
        .unwrap();
    let moment = sampler::once(
        &source,
        &Options::new(Duration::from_secs(1), CommandLines::All),
    )
    .unwrap();
    let sample = Record::Sample(moment.sample);
    let good: String = [
        &Record::Inventory(moment.inventory),
        &sample,
        &sample,
        &sample,
    ]
    .map(|record| serde_json::to_string(record).unwrap() + "\n")
    .concat();
    fs::write(&plain, &good).unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(good.as_bytes()).unwrap();
    let bytes = encoder.finish().unwrap();
    fs::write(&packed, &bytes).unwrap();
    let expected: Vec<_> = good.lines().map(str::to_owned).collect();
    assert_eq!(records(&Recording::open(&plain).unwrap()), expected);
    assert_eq!(records(&Recording::open(&packed).unwrap()), expected);
    // A file that ends within a line, compressed or not, can be played up to that line.
    fs::write(&plain, &good[..good.len() - 20]).unwrap();
    assert!(matches!(Recording::open(&plain).unwrap().cuts(), [cut] if cut.is_at_end));
    fs::write(&packed, &bytes[..bytes.len() - 30]).unwrap();
    assert!(Recording::open(&packed).is_ok(), "{}", message(&packed));
}

#[test]
fn recording_of_0_2_0_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/version-0.2.0.gz");
    let recording = Recording::open(&path).unwrap();
    assert_eq!((recording.samples(), recording.cuts()), (8, &[][..]));
    let records: Vec<_> = records(&recording)
        .iter()
        .map(|record| Record::decode(record).unwrap())
        .collect();
    let [
        Record::Inventory(inventory),
        Record::Details(details),
        Record::Sample(sample),
        ..,
    ] = &*records
    else {
        panic!("{records:?}")
    };
    let gpu = &inventory.gpus[0];
    assert_eq!((gpu.vendor, gpu.vendor_index), (Vendor::Nvidia, None));
    assert!(inventory.platform.find_driver(Vendor::Nvidia).is_some());
    assert_eq!(details.modes.persistence, Reading::Now(true));
    let sample = &sample.gpus[0];
    assert_eq!(sample.power.draw_watts, Reading::Now(693.243));
    let processes = sample.processes.value().unwrap();
    assert_eq!(processes[0].memory_bytes, Reading::Now(98_817_854_864));
    let has_condition = records.iter().any(|record| {
        let Record::Event(event) = record else {
            return false;
        };
        matches!(event.what, EventKind::ConditionBegan(_))
    });
    assert!(has_condition);
}

#[test]
fn what_is_no_recording_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        message(&path)
    };
    assert!(refused(b"GPU 0\n").contains("line 1 is not a record"));
    assert!(refused(b"").contains("no sample"));
    assert!(refused(b"\x1f\x8b\x08 and more").contains("cannot be unpacked"));
    let mut newer = pack_record(&inventory());
    newer[16] = 9;
    assert!(refused(&newer).contains("format 9"), "{}", refused(&newer));
    assert!(
        message(folder.path()).contains("is a directory"),
        "{}",
        message(folder.path())
    );
    assert!(message(Path::new("/nowhere")).contains("check the path"));
}

#[test]
fn a_block_is_due_ten_seconds_after_its_first_record() {
    let mut writer = Writer::default();
    let now = Instant::now();
    writer.push("{}", Kind::Other, 0, now);
    writer.push("{}", Kind::Other, 0, now + Duration::from_secs(9));
    assert_eq!(writer.due().unwrap() - now, Duration::from_secs(10));
    writer.push(&"x".repeat(5 << 20), Kind::Other, 0, now);
    assert_eq!(writer.due(), Some(now), "much text is written at once");
}

#[test]
fn a_seek_brings_the_sample_with_its_past() {
    let folder = tempfile::tempdir().unwrap();
    let mut player = Player::open(&recorded(&folder, 2000, Limits::default())).unwrap();
    let told = player.seek_to(FIRST + 1_500_400).unwrap();
    let texts: Vec<_> = told
        .iter()
        .filter_map(|one| match one {
            Played::Record(text) => Some(text.as_str()),
            Played::Rewound => None,
        })
        .collect();
    assert_eq!(told[0], Played::Rewound);
    assert_eq!(texts[0], inventory());
    assert_eq!(*texts.last().unwrap(), sample(1500));
    let samples = texts.iter().filter(|text| text.contains("sample")).count();
    assert!(
        (400..=602).contains(&samples),
        "a quarter of an hour, thinned: {samples}"
    );
    assert_eq!(
        texts.iter().filter(|text| text.contains("details")).count(),
        1,
        "the newest alone"
    );
    assert_eq!(
        player.times_ms(),
        (FIRST + 1_500_000, FIRST, FIRST + 1_999_000)
    );
    player.start_at(FIRST + 3_000);
    let told = player.advance(Instant::now()).unwrap();
    assert!(
        told.contains(&Played::Record(sample(3))),
        "it begins where it was told to"
    );
}

#[test]
fn the_past_of_a_sample_reaches_into_the_file_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = recorded(
        &folder,
        100,
        Limits {
            bytes: Some(400),
            keep: Some(9),
            time: None,
        },
    );
    let mut player = Player::open(&path).unwrap();
    let last = player.recording().samples() - 1;
    assert!(
        player.recording().blocks() > last / 10 + 1,
        "files begin with blocks of their own"
    );
    let told = player.seek_to(u64::MAX).unwrap();
    let samples = told
        .iter()
        .filter(|one| matches!(one, Played::Record(text) if text.contains("sample")))
        .count();
    assert_eq!(samples, last + 1);
}

#[test]
fn block_that_claims_too_much_text_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.gz");
    // The text has ten MiB, compressed to ten KiB.
    let line = format!("{}\n", sample(0));
    let text = line.repeat((10 << 20) / line.len());
    let bomb = block::pack(
        text.as_bytes(),
        Head {
            samples: 1,
            ..Head::default()
        },
    );
    fs::write(&path, bomb.repeat(10)).unwrap();
    let error = Recording::open(&path).unwrap_err().to_string();
    assert!(
        error.contains("more than 32 MiB of text or 200 times their size"),
        "{error}"
    );
    // A valid block after the refused one can be read.
    let good = block::pack(
        line.as_bytes(),
        Head {
            samples: 1,
            ..Head::default()
        },
    );
    fs::write(&path, [&bomb[..], &good].concat()).unwrap();
    let recording = Recording::open(&path).unwrap();
    assert_eq!((recording.samples(), recording.cuts().len()), (1, 1));
}

#[test]
fn block_of_too_many_records_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.gz");
    let records =
        (0..100_001).map(|number| format!("{{\"type\":\"sample\",\"at_ms\":{}}}\n", number * 7919));
    let text: String = records.collect();
    fs::write(
        &path,
        block::pack(
            text.as_bytes(),
            Head {
                samples: 100_001,
                ..Head::default()
            },
        ),
    )
    .unwrap();
    let error = Recording::open(&path)
        .unwrap()
        .read(0)
        .unwrap_err()
        .to_string();
    assert!(error.contains("more than 100000 records"), "{error}");
}

#[test]
fn compressed_lines_that_grow_too_much_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines.gz");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&vec![b'\n'; 50 << 20]).unwrap();
    fs::write(&path, encoder.finish().unwrap()).unwrap();
    let error = Recording::open(&path).unwrap_err().to_string();
    assert!(error.contains("more than 200 times as large"), "{error}");
}

#[test]
fn damage_between_blocks_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.gz");
    let line = format!("{}\n", sample(0));
    let block = block::pack(
        line.as_bytes(),
        Head {
            samples: 1,
            ..Head::default()
        },
    );
    let bytes = [&block[..], b"x"].concat().repeat(20_000);
    fs::write(&path, &bytes).unwrap();
    // Returns the number of bytes that this thread has read.
    let read = || {
        let counts = fs::read_to_string("/proc/thread-self/io").unwrap();
        counts
            .lines()
            .find_map(|line| line.strip_prefix("rchar: ")?.parse::<usize>().ok())
            .unwrap()
    };
    let before = read();
    assert_eq!(Recording::open(&path).unwrap().samples(), 20_000);
    let times = (read() - before) / bytes.len();
    assert!(times < 10, "each byte was read {times} times");
}

#[test]
fn details_of_the_past_are_limited() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("details.gz");
    let details =
        |index: usize| format!("{{\"type\":\"details\",\"index\":{index},\"at_ms\":{FIRST}}}\n");
    let event = |at: u64| {
        format!("{{\"type\":\"event\",\"what\":\"mig_changed\",\"gpu\":null,\"at_ms\":{at}}}\n")
    };
    let text: String = (0..3000)
        .map(details)
        .chain((0..3000).map(event))
        .chain([sample(0) + "\n"])
        .collect();
    fs::write(
        &path,
        block::pack(
            text.as_bytes(),
            Head {
                samples: 1,
                first_ms: FIRST,
                ..Head::default()
            },
        ),
    )
    .unwrap();
    let played = Player::new(Recording::open(&path).unwrap())
        .seek_to(FIRST)
        .unwrap();
    let count = |kind: &str| {
        let is_it =
            |played: &&Played| matches!(played, Played::Record(record) if record.contains(kind));
        played.iter().filter(is_it).count()
    };
    assert_eq!(
        (
            count("\"details\""),
            count("\"event\""),
            count("\"sample\"")
        ),
        (1024, 256, 1)
    );
}
