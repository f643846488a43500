//! Tests of all scenarios on the model, and of the protection of others.

use std::{thread, time::Duration};

use super::*;
use crate::{info::Cpu, protocol::Backend};

const GIB: f64 = (1_u64 << 30) as f64;

/// Runs a scenario on the model, and returns its reports and exit code.
fn shown(scenario: &str, setting: &Setting, interrupted: bool) -> (Vec<Report>, u8) {
    let (cpu, flag) = (Cpu::this(), AtomicBool::new(interrupted));
    let mut said = Vec::new();
    let code = run(
        find(scenario).unwrap(),
        0.06,
        &Place::Cpu(&cpu),
        setting,
        &mut |report| said.push(report),
        &flag,
    );
    (said, code)
}

fn sentences(said: &[Report], of: Topic) -> Vec<&str> {
    let sentence =
        |report: &'_ Report| matches!(report, Report::Said { topic, .. } if *topic == of);
    said.iter()
        .filter(|report| sentence(report))
        .map(|report| match report {
            Report::Said { text, .. } => text.as_str(),
            _ => "",
        })
        .collect()
}

fn levels(said: &[Report]) -> Vec<MemoryLevel> {
    let level = |report: &Report| match report {
        Report::Progress { memory, .. } => *memory,
        _ => None,
    };
    said.iter().filter_map(level).collect()
}

#[test]
fn each_is_shown_and_explained_and_leaves_nothing() {
    for scenario in all() {
        let (said, code) = shown(scenario.id, &Setting::default(), false);
        assert_eq!(code, 0, "{}: {said:?}", scenario.id);
        assert!(
            matches!(&said[0], Report::Begun { devices, .. } if devices[0].name.contains("model")),
            "{said:?}"
        );
        assert!(
            sentences(&said, Topic::Step)[0].contains("model"),
            "{said:?}"
        );
        assert!(
            !sentences(&said, Topic::Cause).is_empty()
                && !sentences(&said, Topic::Lesson).is_empty(),
            "{said:?}"
        );
        assert_eq!(sentences(&said, Topic::Fix).len(), scenario.fixes.len());
        assert!(
            sentences(&said, Topic::Proof)[0].ends_with("equal to the byte."),
            "{said:?}"
        );
        let levels = levels(&said);
        assert!(!levels.is_empty(), "{}", scenario.id);
        for level in levels {
            assert!(
                level.total_bytes - level.used_bytes >= level.reserve_bytes,
                "{}: {level}",
                scenario.id
            );
        }
    }
}

#[test]
fn what_they_are_about_is_seen() {
    for (id, words, most_gib) in [
        (
            "huge",
            &["Needed 9.0 GiB, free 7.5 GiB, of 8.0 GiB"][..],
            0.51,
        ),
        (
            "fill",
            &[
                "Step 8: 512 MiB free of 8.0 GiB",
                "CUDA_ERROR_OUT_OF_MEMORY, code 2",
            ],
            7.51,
        ),
        ("leak", &["Forecast: full in", "the forecast was"], 7.49),
        (
            "fragment",
            &[
                "1.8 GiB of the arena are free, 224 MiB at most",
                "in a row",
                "0 MiB more",
            ],
            4.01,
        ),
        (
            "cache",
            &["0 MiB are in use, the pool keeps 3.5 GiB", "keeps 0 MiB"],
            4.01,
        ),
        (
            "async",
            &["While the work runs, 5.8 GiB are free", "7.5 GiB are free"],
            2.26,
        ),
        ("contend", &["finds 2.2 GiB free", "gets its"], 5.76),
        (
            "not-memory",
            &["code 1 ", "code 701", "with 512 threads"],
            0.51,
        ),
    ] {
        let (said, _) = shown(id, &Setting::default(), false);
        let steps = sentences(&said, Topic::Step).join("\n");
        for word in words {
            assert!(steps.contains(word), "{id}: no {word} in {steps}");
        }
        let most = levels(&said)
            .iter()
            .map(|level| level.used_bytes as f64 / GIB)
            .fold(0.0, f64::max);
        assert!((most - most_gib).abs() < 0.02, "{id}: {most}");
    }
}

#[test]
fn a_cap_is_kept_to() {
    for scenario in all() {
        let setting = Setting {
            cap_bytes: Some(1 << 30),
            ..Setting::default()
        };
        let (said, code) = shown(scenario.id, &setting, false);
        assert_eq!(code, 0, "{said:?}");
        let most = levels(&said)
            .iter()
            .map(|level| level.used_bytes as f64 / GIB)
            .fold(0.0, f64::max);
        assert!(most <= 1.5 + 0.01, "{}: {most}", scenario.id);
    }
    // Without any memory, the scenario is refused.
    let setting = Setting {
        cap_bytes: Some(0),
        ..Setting::default()
    };
    let (said, code) = shown("fill", &setting, false);
    let [
        ..,
        Report::Failed {
            error,
            code: 5,
            backend: Backend::Cpu,
            ..
        },
    ] = &said[..]
    else {
        panic!("{said:?}")
    };
    assert!(code == 5 && error.contains("512 MiB stay free"), "{error}");
}

/// The forecast is about the loop, and does not depend on delays of the machine.
#[test]
fn a_leak_is_forecast_on_a_machine_that_is_busy_for_a_while() {
    for stalled_at in [2, 6] {
        let (cpu, flag) = (Cpu::this(), AtomicBool::new(false));
        let (mut said, mut levels) = (Vec::new(), 0);
        let mut say = |report: Report| {
            levels += usize::from(matches!(&report, Report::Progress { .. }));
            if levels == stalled_at && matches!(&report, Report::Progress { .. }) {
                thread::sleep(Duration::from_millis(1200));
            }
            said.push(report);
        };
        let code = run(
            find("leak").unwrap(),
            0.06,
            &Place::Cpu(&cpu),
            &Setting::default(),
            &mut say,
            &flag,
        );
        assert_eq!(code, 0, "{said:?}");
        let steps = sentences(&said, Topic::Step).join("\n");
        assert!(
            steps.contains(" s, delayed by 1."),
            "the time is that which it took: {steps}"
        );
    }
}
