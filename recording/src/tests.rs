//! Tests that write, truncate, damage, rotate and read recordings.

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

use super::{block::BlockHead, *};

pub(crate) const FIRST_MS: u64 = 1_700_000_000_000;

fn make_inventory_json() -> String {
    r#"{"type":"inventory","at_ms":5,"hostname":"lab","gpus":[]}"#.to_owned()
}

fn make_sample_json(second: u64) -> String {
    format!(
        r#"{{"type":"sample","seq":{second},"at_ms":{}}}"#,
        FIRST_MS + second * 1000
    )
}

fn push(writer: &mut Writer, record: &str) {
    let (kind, at_ms) = parse_kind_and_time(record).unwrap();
    writer.push(record, kind, at_ms, Instant::now());
}

/// Writes samples that are one second apart, in blocks of ten, with the inventory in the first
/// block.
fn write_recording(folder: &TempDir, samples: u64, limits: RotationLimits) -> PathBuf {
    let path = folder.path().join("a.gz");
    let mut files = Files::create(&path, limits, false).unwrap();
    files.set_first_block(pack_record(&make_inventory_json()));
    let mut writer = Writer::default();
    push(&mut writer, &make_inventory_json());
    for second in 0..samples {
        if second % 10 == 9 {
            push(
                &mut writer,
                &format!(
                    r#"{{"type":"details","index":0,"at_ms":{}}}"#,
                    FIRST_MS + second * 1000
                ),
            );
        }
        push(&mut writer, &make_sample_json(second));
        if second % 10 == 9 {
            files.write(&writer.take_block().unwrap()).unwrap();
        }
    }
    if let Some(block) = writer.take_block() {
        files.write(&block).unwrap();
    }
    assert!(writer.take_block().is_none() && writer.next_due_time().is_none());
    path
}

/// Returns all records of a recording in order.
fn read_records(recording: &Recording) -> Vec<String> {
    let blocks = (0..recording.block_count()).map(|block| recording.read_block(block).unwrap());
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

fn read_seconds(recording: &Recording) -> Vec<u64> {
    let all = read_records(recording);
    let samples = all
        .iter()
        .filter(|record| record.contains(r#""type":"sample""#));
    samples
        .map(|record| (parse_kind_and_time(record).unwrap().1 - FIRST_MS) / 1000)
        .collect()
}

fn expect_open_error(path: &Path) -> String {
    Recording::open(path)
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

#[test]
fn recording_is_readable_by_gpumon_and_gzip() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_recording(&folder, 25, RotationLimits::default());
    let recording = Recording::open(&path).unwrap();
    assert_eq!(
        (
            recording.sample_count(),
            recording.block_count(),
            recording.unreadable_parts()
        ),
        (25, 3, &[][..])
    );
    assert_eq!(
        recording.first_and_last_sample_ms(),
        (FIRST_MS, FIRST_MS + 24_000)
    );
    assert_eq!(read_seconds(&recording), (0..25).collect::<Vec<_>>());
    let mut text = String::new();
    let mut gzip = flate2::read::MultiGzDecoder::new(fs::File::open(&path).unwrap());
    std::io::Read::read_to_string(&mut gzip, &mut text).unwrap();
    assert_eq!(
        text.lines().map(str::to_owned).collect::<Vec<_>>(),
        read_records(&recording)
    );
    assert_eq!(
        recording.blocks_in_span(&(FIRST_MS + 10_000..FIRST_MS + 11_000)),
        [1]
    );
    assert_eq!(
        recording.read_inventory_before(2).unwrap(),
        Some(make_inventory_json())
    );
    assert_eq!(recording.read_inventory_before(0).unwrap(), None);
}

#[test]
fn truncated_recording_is_readable_to_last_block() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_recording(&folder, 40, RotationLimits::default());
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
                assert_eq!(cut.sample_count(), blocks * 10, "{length} bytes");
                let is_whole = ends.contains(&length);
                assert_eq!(
                    cut.unreadable_parts().len(),
                    usize::from(!is_whole),
                    "{length} bytes"
                );
                if let [cut] = cut.unreadable_parts() {
                    assert!(
                        cut.is_at_end && cut.bytes as usize == length - ends[blocks - 1],
                        "{cut:?}"
                    );
                    assert_eq!(cut.after_ms, FIRST_MS + blocks as u64 * 10_000 - 1000);
                }
            }
            Err(error) => assert_eq!(blocks, 0, "{length} bytes: {error}"),
        }
    }
}

#[test]
fn damage_makes_only_one_block_unreadable() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_recording(&folder, 40, RotationLimits::default());
    let mut bytes = fs::read(&path).unwrap();
    let second = Recording::open(&path).unwrap().head(0).bytes as usize;
    // A change in a block's text is detected by the checksum.
    bytes[second + block::HEAD_BYTES + 20] ^= 0xff;
    fs::write(&path, &bytes).unwrap();
    let recording = Recording::open(&path).unwrap();
    assert!(
        recording
            .read_block(1)
            .unwrap_err()
            .to_string()
            .contains("damaged")
    );
    assert!(recording.read_block(2).is_ok());
    let mut player = Player::new(recording);
    let mut shown = Vec::new();
    let mut errors = 0;
    while !player.is_over() {
        match player.step(true) {
            Ok(reported) => shown.extend(reported),
            Err(_) => errors += 1,
        }
    }
    assert_eq!(errors, 1, "it goes on behind the damage");
    assert_eq!(
        shown
            .iter()
            .filter(|one| matches!(one, PlayedItem::Record(text) if text.contains("sample")))
            .count(),
        30
    );
    // Even if a block's head is damaged, the next block is found.
    bytes[second] = 0;
    fs::write(&path, &bytes).unwrap();
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.sample_count(), 30);
    assert!(
        matches!(recording.unreadable_parts(), [cut] if !cut.is_at_end && cut.after_ms == FIRST_MS + 9_000),
        "{:?}",
        recording.unreadable_parts()
    );
    // A loss of power can leave zeros on the disk.
    bytes[..second].fill(0);
    fs::write(&path, &bytes).unwrap();
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.sample_count(), 20);
    assert!(
        matches!(recording.unreadable_parts(), [cut] if cut.after_ms == 0),
        "{:?}",
        recording.unreadable_parts()
    );
}

#[test]
fn records_before_damage_are_shown_before_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_recording(&folder, 20, RotationLimits::default());
    let mut bytes = fs::read(&path).unwrap();
    let second = Recording::open(&path).unwrap().head(0).bytes as usize;
    bytes[second + block::HEAD_BYTES + 20] ^= 0xff;
    fs::write(&path, &bytes).unwrap();
    let mut player = Player::open(&path).unwrap();
    player.set_speed(1000.0);
    let later = Instant::now() + Duration::from_mins(1);
    let shown = player.advance(later).unwrap();
    assert_eq!(
        shown
            .iter()
            .filter(|one| matches!(one, PlayedItem::Record(text) if text.contains("sample")))
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
fn full_recording_files_become_numbered_parts() {
    let folder = tempfile::tempdir().unwrap();
    let limits = RotationLimits {
        bytes: Some(400),
        keep: Some(3),
        time: None,
    };
    let path = write_recording(&folder, 100, limits);
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["a.gz", "a.gz.1", "a.gz.2", "a.gz.3"]);
    for name in &names {
        let part = folder.path().join(name);
        assert!(fs::metadata(&part).unwrap().len() <= 400, "{name:?}");
        let first = Recording::open(&part).map(|part| read_records(&part)[0].clone());
        assert_eq!(
            first.unwrap_or_else(|error| panic!("{error}")),
            make_inventory_json(),
            "each can be read alone"
        );
    }
    let all = read_seconds(&Recording::open(&path).unwrap());
    let newest: Vec<u64> = (100 - all.len() as u64..100).collect();
    assert_eq!(
        all, newest,
        "in the order in which they were recorded, without a gap"
    );
}

#[test]
fn nothing_is_overwritten_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_recording(&folder, 10, RotationLimits::default());
    let error = |path: &Path, overwrite| {
        Files::create(path, RotationLimits::default(), overwrite)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert!(error(&path, false).contains("--force"));
    assert_eq!(Recording::open(&path).unwrap().sample_count(), 10);
    let older = folder.path().join("b.gz.1");
    fs::copy(&path, &older).unwrap();
    assert!(error(&folder.path().join("b.gz"), false).contains("b.gz.1 exists"));
    fs::write(&older, "a letter").unwrap();
    assert!(error(&folder.path().join("b.gz"), true).contains("not a recording"));
    assert_eq!(fs::read(&older).unwrap(), b"a letter");
    let first = Files::create(&path, RotationLimits::default(), true).unwrap();
    assert!(error(&path, true).contains("another gpumon"));
    drop(first);
    assert!(error(&folder.path().join("none/c.gz"), false).contains("create its folder"));
    let null = Files::create(
        Path::new("/dev/null"),
        RotationLimits {
            bytes: Some(1),
            ..RotationLimits::default()
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
fn collector_output_is_readable_even_if_compressed() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, packed) = (folder.path().join("a.ndjson"), folder.path().join("b.gz"));
    let source = SourceChoice::Sim(1)
        .open(&gpumon_probe::vendor::Roots::default())
        .unwrap();
    let moment = sampler::sample_once(
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
    assert_eq!(read_records(&Recording::open(&plain).unwrap()), expected);
    assert_eq!(read_records(&Recording::open(&packed).unwrap()), expected);
    // A file that ends in the middle of a line, compressed or not, can be played up to that line.
    fs::write(&plain, &good[..good.len() - 20]).unwrap();
    assert!(matches!(Recording::open(&plain).unwrap().unreadable_parts(), [cut] if cut.is_at_end));
    fs::write(&packed, &bytes[..bytes.len() - 30]).unwrap();
    assert!(
        Recording::open(&packed).is_ok(),
        "{}",
        expect_open_error(&packed)
    );
}

#[test]
fn recording_of_version_0_2_0_is_readable() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/version-0.2.0.gz");
    let recording = Recording::open(&path).unwrap();
    assert_eq!(
        (recording.sample_count(), recording.unreadable_parts()),
        (8, &[][..])
    );
    let records: Vec<_> = read_records(&recording)
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
fn file_other_than_recording_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        expect_open_error(&path)
    };
    assert!(refused(b"GPU 0\n").contains("line 1 is not a gpumon record"));
    assert!(refused(b"").contains("no sample"));
    assert!(refused(b"\x1f\x8b\x08 and more").contains("cannot decompress"));
    let mut newer = pack_record(&make_inventory_json());
    newer[16] = 9;
    assert!(refused(&newer).contains("format 9"), "{}", refused(&newer));
    assert!(
        expect_open_error(folder.path()).contains("is a directory"),
        "{}",
        expect_open_error(folder.path())
    );
    assert!(expect_open_error(Path::new("/nowhere")).contains("check the path"));
}

#[test]
fn block_is_written_ten_seconds_after_first_record() {
    let mut writer = Writer::default();
    let now = Instant::now();
    writer.push("{}", RecordKind::Other, 0, now);
    writer.push("{}", RecordKind::Other, 0, now + Duration::from_secs(9));
    assert_eq!(
        writer.next_due_time().unwrap() - now,
        Duration::from_secs(10)
    );
    writer.push(&"x".repeat(5 << 20), RecordKind::Other, 0, now);
    assert_eq!(
        writer.next_due_time(),
        Some(now),
        "much text is written at once"
    );
}

#[test]
fn seek_returns_earlier_details_and_events_before_sample() {
    let folder = tempfile::tempdir().unwrap();
    let mut player =
        Player::open(&write_recording(&folder, 2000, RotationLimits::default())).unwrap();
    let reported = player.seek_to_time(FIRST_MS + 1_500_400).unwrap();
    let texts: Vec<_> = reported
        .iter()
        .filter_map(|one| match one {
            PlayedItem::Record(text) => Some(text.as_str()),
            PlayedItem::Rewound => None,
        })
        .collect();
    assert_eq!(reported[0], PlayedItem::Rewound);
    assert_eq!(texts[0], make_inventory_json());
    assert_eq!(*texts.last().unwrap(), make_sample_json(1500));
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
        player.current_first_and_last_ms(),
        (FIRST_MS + 1_500_000, FIRST_MS, FIRST_MS + 1_999_000)
    );
    player.start_at(FIRST_MS + 3_000);
    let reported = player.advance(Instant::now()).unwrap();
    assert!(
        reported.contains(&PlayedItem::Record(make_sample_json(3))),
        "it begins where it was told to"
    );
}

#[test]
fn seek_includes_earlier_records_from_previous_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_recording(
        &folder,
        100,
        RotationLimits {
            bytes: Some(400),
            keep: Some(9),
            time: None,
        },
    );
    let mut player = Player::open(&path).unwrap();
    let last = player.recording().sample_count() - 1;
    assert!(
        player.recording().block_count() > last / 10 + 1,
        "files begin with blocks of their own"
    );
    let reported = player.seek_to_time(u64::MAX).unwrap();
    let samples = reported
        .iter()
        .filter(|one| matches!(one, PlayedItem::Record(text) if text.contains("sample")))
        .count();
    assert_eq!(samples, last + 1);
}

#[test]
fn block_that_claims_too_much_text_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.gz");
    // The text has 10 MiB, compressed to 10 KiB.
    let line = format!("{}\n", make_sample_json(0));
    let text = line.repeat((10 << 20) / line.len());
    let bomb = block::pack(
        text.as_bytes(),
        BlockHead {
            samples: 1,
            ..BlockHead::default()
        },
    );
    fs::write(&path, bomb.repeat(10)).unwrap();
    let error = Recording::open(&path).unwrap_err().to_string();
    assert!(
        error.contains("more than 32 MiB of text, or expand to more than 200 times their size"),
        "{error}"
    );
    // The block after the rejected block is valid and can be read.
    let good = block::pack(
        line.as_bytes(),
        BlockHead {
            samples: 1,
            ..BlockHead::default()
        },
    );
    fs::write(&path, [&bomb[..], &good].concat()).unwrap();
    let recording = Recording::open(&path).unwrap();
    assert_eq!(
        (recording.sample_count(), recording.unreadable_parts().len()),
        (1, 1)
    );
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
            BlockHead {
                samples: 100_001,
                ..BlockHead::default()
            },
        ),
    )
    .unwrap();
    let error = Recording::open(&path)
        .unwrap()
        .read_block(0)
        .unwrap_err()
        .to_string();
    assert!(error.contains("more than 100000 records"), "{error}");
}

#[test]
fn lines_with_excessive_compression_ratio_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines.gz");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&vec![b'\n'; 50 << 20]).unwrap();
    fs::write(&path, encoder.finish().unwrap()).unwrap();
    let error = Recording::open(&path).unwrap_err().to_string();
    assert!(error.contains("more than 200 times its size"), "{error}");
}

#[test]
fn garbage_between_blocks_is_read_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.gz");
    let line = format!("{}\n", make_sample_json(0));
    let block = block::pack(
        line.as_bytes(),
        BlockHead {
            samples: 1,
            ..BlockHead::default()
        },
    );
    let bytes = [&block[..], b"x"].concat().repeat(20_000);
    fs::write(&path, &bytes).unwrap();
    // This closure returns the number of bytes that the thread has read so far.
    let read = || {
        let counts = fs::read_to_string("/proc/thread-self/io").unwrap();
        counts
            .lines()
            .find_map(|line| line.strip_prefix("rchar: ")?.parse::<usize>().ok())
            .unwrap()
    };
    let before = read();
    assert_eq!(Recording::open(&path).unwrap().sample_count(), 20_000);
    let times = (read() - before) / bytes.len();
    assert!(times < 10, "each byte was read {times} times");
}

#[test]
fn seek_limits_number_of_earlier_details_and_events() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("details.gz");
    let details =
        |index: usize| format!("{{\"type\":\"details\",\"index\":{index},\"at_ms\":{FIRST_MS}}}\n");
    let event = |at: u64| {
        format!("{{\"type\":\"event\",\"what\":\"mig_changed\",\"gpu\":null,\"at_ms\":{at}}}\n")
    };
    let text: String = (0..3000)
        .map(details)
        .chain((0..3000).map(event))
        .chain([make_sample_json(0) + "\n"])
        .collect();
    fs::write(
        &path,
        block::pack(
            text.as_bytes(),
            BlockHead {
                samples: 1,
                first_ms: FIRST_MS,
                ..BlockHead::default()
            },
        ),
    )
    .unwrap();
    let played = Player::new(Recording::open(&path).unwrap())
        .seek_to_time(FIRST_MS)
        .unwrap();
    let count = |kind: &str| {
        let is_it = |played: &&PlayedItem| matches!(played, PlayedItem::Record(record) if record.contains(kind));
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
