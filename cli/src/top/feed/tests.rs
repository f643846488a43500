//! Tests of replays: playback, seeking, and invalid recordings.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gpumon_recording::Player;

use super::*;
use crate::top::{
    model::{Model, Origin},
    testing,
};

const FIRST: u64 = 1_700_000_000_000;

/// Writes a recording with one sample per second. Before every tenth sample, it contains details
/// and an event.
fn write_recording(name: &str, samples: u64) -> PathBuf {
    let path = std::env::temp_dir().join(format!(
        "gpumon-replay-{}-{name}.ndjson",
        std::process::id()
    ));
    let mut file = fs::File::create(&path).unwrap();
    let moment = testing::sample_simulated_gpus(1);
    let mut write =
        |record: &Record| writeln!(file, "{}", serde_json::to_string(record).unwrap()).unwrap();
    write(&Record::Inventory(moment.inventory));
    let mut sample = moment.sample;
    for second in 0..samples {
        let at_ms = FIRST + second * 1000;
        if second % 10 == 0 {
            let mut details = moment.details[0].clone();
            details.at_ms = at_ms;
            write(&Record::Details(details));
            let what = gpumon_probe::model::EventKind::MigChanged;
            write(&Record::Event(gpumon_probe::model::Event {
                at_ms,
                gpu: None,
                what,
            }));
        }
        (sample.at_ms, sample.gpus[0].at_ms, sample.seq) = (at_ms, at_ms, second);
        write(&Record::Sample(sample.clone()));
    }
    path
}

fn build_model_after(played: Vec<PlayedItem>) -> Model {
    let mut model = Model::new(Origin::Recording);
    for update in convert_records(Ok(played)).unwrap() {
        model.ingest(update);
    }
    model
}

fn newest_sample_number(model: &Model) -> u64 {
    model.sample.as_ref().unwrap().seq
}

#[test]
fn seeking_restores_earlier_history() {
    let mut player = Player::open(&write_recording("seek", 400)).unwrap();
    let model = build_model_after(player.seek_to_time(FIRST + 250_400).unwrap());
    assert_eq!(newest_sample_number(&model), 250);
    assert!(model.inventory.is_some());
    assert_eq!(model.details[0].at_ms, FIRST + 250_000);
    assert_eq!(model.events.len(), 26);
    let line = model.read_line_values(crate::top::history::ChartLine::Gpu(0, 0), 200_000, 200);
    assert_eq!(
        line.iter().filter(|value| value.is_none()).count(),
        0,
        "{line:?}"
    );
    assert_eq!(
        player.current_first_and_last_ms(),
        (FIRST + 250_000, FIRST, FIRST + 399_000)
    );
    // A skip beyond the start or the end of the recording stops at the start or the end.
    assert_eq!(
        newest_sample_number(&build_model_after(player.seek_by(-10_000_000).unwrap())),
        0
    );
    assert_eq!(
        newest_sample_number(&build_model_after(player.seek_by(10_000_000).unwrap())),
        399
    );
    assert!(player.is_over() && player.next_due_time().is_none());
}

#[test]
fn replay_step_moves_one_sample_and_pauses() {
    let mut player = Player::open(&write_recording("step", 5)).unwrap();
    let mut model = build_model_after(player.step(true).unwrap());
    for expected in [1, 2, 1, 0, 0] {
        let forward = expected > newest_sample_number(&model);
        for update in convert_records(player.step(forward)).unwrap() {
            model.ingest(update);
        }
        assert_eq!(newest_sample_number(&model), expected);
        assert!(player.is_paused() && player.next_due_time().is_none());
    }
}

#[test]
fn replay_runs_at_requested_speed() {
    let mut player = Player::open(&write_recording("speed", 100)).unwrap();
    let begun = Instant::now();
    let count = |played: Vec<PlayedItem>| {
        let is_sample = |update: &&Update| matches!(update, Update::Record(record) if matches!(**record, Record::Sample(_)));
        convert_records(Ok(played))
            .unwrap()
            .iter()
            .filter(is_sample)
            .count()
    };
    assert_eq!(
        count(player.advance(begun + Duration::from_millis(10)).unwrap()),
        1
    );
    assert_eq!(
        count(player.advance(begun + Duration::from_millis(900)).unwrap()),
        0
    );
    assert_eq!(
        count(player.advance(begun + Duration::from_millis(1100)).unwrap()),
        1
    );
    for _ in 0..3 {
        player.change_speed(true);
    }
    assert!((player.playback_speed() - 10.0).abs() < 1e-9);
    let now = Instant::now();
    assert_eq!(
        count(player.advance(now + Duration::from_millis(550)).unwrap()),
        5
    );
    for _ in 0..20 {
        player.change_speed(false);
    }
    assert!((player.playback_speed() - 0.1).abs() < 1e-9);
}

#[test]
fn invalid_recording_is_refused_with_line_number() {
    let path = write_recording("bad", 3);
    let good = fs::read_to_string(&path).unwrap();
    let message = |text: &str| {
        fs::write(&path, text).unwrap();
        Player::open(&path).err().map(|error| error.to_string())
    };
    let bad = message(&format!("{good}{{\"type\":\"sample\"}}\n")).unwrap();
    let line = good.lines().count() + 1;
    assert!(
        bad.contains(&format!("line {line} is not")) && bad.contains("gpumon record"),
        "{bad}"
    );
    assert!(message("GPU 0\n").unwrap().contains("line 1"));
    assert!(message("").unwrap().contains("no sample"));
    // If the last line of a recording is incomplete, the recording can still be played up to the
    // line before it.
    assert_eq!(message(&good[..good.len() - 20]), None);
    fs::remove_file(&path).unwrap();
    assert!(find_missing_file_message(&path).contains("check the path"));
}

#[test]
fn recording_with_impossible_times_plays_to_end() {
    let path = write_recording("times", 12);
    let good = fs::read_to_string(&path).unwrap();
    let mut numbers = [u64::MAX, 0, u64::MAX - 1, 1, u64::MAX].into_iter().cycle();
    let lines = good.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        if line["type"] == "sample" {
            line["at_ms"] = numbers.next().unwrap().into();
        }
        format!("{line}\n")
    });
    fs::write(&path, lines.collect::<String>()).unwrap();
    let mut player = Player::open(&path).unwrap();
    let mut model = Model::new(Origin::Recording);
    while !player.is_over() {
        for update in convert_records(player.step(true)).unwrap() {
            model.ingest(update);
        }
        model.read_line_values(crate::top::history::ChartLine::Gpu(0, 0), 3_600_000, 100);
        player.change_speed(true);
    }
    assert_eq!(newest_sample_number(&model), 11);
    for by_ms in [i64::MAX, i64::MIN, 1] {
        assert!(!player.seek_by(by_ms).unwrap().is_empty());
    }
}

#[test]
fn recording_error_quotes_line_without_control_characters() {
    let path = write_recording("evil", 1);
    fs::write(&path, r#"{"type":"\u001b]0;pwn\u0007x"}"#).unwrap();
    let message = find_missing_file_message(&path);
    assert!(
        message.contains("pwn") && !message.contains(char::is_control),
        "{message:?}"
    );
}

fn find_missing_file_message(path: &Path) -> String {
    Player::open(path)
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}
