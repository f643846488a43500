//! Tests of all scenarios on the model, and of the rules that protect other processes.

use std::{thread, time::Duration};

use super::*;
use crate::{info::Cpu, protocol::Backend};

const GIB: f64 = (1_u64 << 30) as f64;

/// Runs a scenario on the model. Returns the reports and the exit code.
fn run_on_model(scenario: &str, setting: &DemoSettings, interrupted: bool) -> (Vec<Report>, u8) {
    let (cpu, flag) = (Cpu::read(), AtomicBool::new(interrupted));
    let mut said = Vec::new();
    let code = run_scenario(
        find_scenario(scenario).unwrap(),
        0.06,
        &ExecutionPlace::Cpu(&cpu),
        setting,
        &mut |report| said.push(report),
        &flag,
    );
    (said, code)
}

fn find_sentences(said: &[Report], of: Topic) -> Vec<&str> {
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

fn memory_levels(said: &[Report]) -> Vec<MemoryLevel> {
    let level = |report: &Report| match report {
        Report::Progress { memory, .. } => *memory,
        _ => None,
    };
    said.iter().filter_map(level).collect()
}

#[test]
fn scenarios_are_explained_and_release_memory() {
    for scenario in list_scenarios() {
        let (said, code) = run_on_model(scenario.id, &DemoSettings::default(), false);
        assert_eq!(code, 0, "{}: {said:?}", scenario.id);
        assert!(
            matches!(&said[0], Report::Begun { devices, .. } if devices[0].name.contains("model")),
            "{said:?}"
        );
        assert!(
            find_sentences(&said, Topic::Step)[0].contains("model"),
            "{said:?}"
        );
        assert!(
            !find_sentences(&said, Topic::Cause).is_empty()
                && !find_sentences(&said, Topic::Lesson).is_empty(),
            "{said:?}"
        );
        assert_eq!(
            find_sentences(&said, Topic::Fix).len(),
            scenario.fixes.len()
        );
        assert!(
            find_sentences(&said, Topic::Proof)[0].ends_with("identical to the byte."),
            "{said:?}"
        );
        let levels = memory_levels(&said);
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
fn each_oom_demonstration_shows_its_effect() {
    for (id, words, most_gib) in [
        (
            "huge",
            &["9.0 GiB needed, but only 7.5 GiB of 8.0 GiB free"][..],
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
                "1.8 GiB of the arena are free, but at most 224 MiB are contiguous",
                "mapped to contiguous addresses",
                "the memory in use on the device grew by 0 MiB",
            ],
            4.01,
        ),
        (
            "cache",
            &[
                "0 MiB are in use, but the pool keeps 3.5 GiB",
                "keeps 0 MiB",
            ],
            4.01,
        ),
        (
            "async",
            &["While the work runs, 5.8 GiB are free", "7.5 GiB are free"],
            2.26,
        ),
        (
            "contend",
            &[
                "but 2.2 GiB are free. Refused",
                "finds 7.5 GiB free, and gets its",
            ],
            5.76,
        ),
        (
            "not-memory",
            &["code 1 ", "code 701", "with 512 threads"],
            0.51,
        ),
    ] {
        let (said, _) = run_on_model(id, &DemoSettings::default(), false);
        let steps = find_sentences(&said, Topic::Step).join("\n");
        for word in words {
            assert!(steps.contains(word), "{id}: no {word} in {steps}");
        }
        let most = memory_levels(&said)
            .iter()
            .map(|level| level.used_bytes as f64 / GIB)
            .fold(0.0, f64::max);
        assert!((most - most_gib).abs() < 0.02, "{id}: {most}");
    }
}

#[test]
fn memory_cap_is_respected() {
    for scenario in list_scenarios() {
        let setting = DemoSettings {
            cap_bytes: Some(1 << 30),
            ..DemoSettings::default()
        };
        let (said, code) = run_on_model(scenario.id, &setting, false);
        assert_eq!(code, 0, "{said:?}");
        let most = memory_levels(&said)
            .iter()
            .map(|level| level.used_bytes as f64 / GIB)
            .fold(0.0, f64::max);
        assert!(most <= 1.5 + 0.01, "{}: {most}", scenario.id);
    }
    // If no memory may be used, the scenario is refused.
    let setting = DemoSettings {
        cap_bytes: Some(0),
        ..DemoSettings::default()
    };
    let (said, code) = run_on_model("fill", &setting, false);
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

/// The forecast must depend only on the loop, not on delays of the machine.
#[test]
fn leak_forecast_ignores_scheduling_delays() {
    for stalled_at in [2, 6] {
        let (cpu, flag) = (Cpu::read(), AtomicBool::new(false));
        let (mut said, mut levels) = (Vec::new(), 0);
        let mut say = |report: Report| {
            levels += usize::from(matches!(&report, Report::Progress { .. }));
            if levels == stalled_at && matches!(&report, Report::Progress { .. }) {
                thread::sleep(Duration::from_millis(1200));
            }
            said.push(report);
        };
        let code = run_scenario(
            find_scenario("leak").unwrap(),
            0.06,
            &ExecutionPlace::Cpu(&cpu),
            &DemoSettings::default(),
            &mut say,
            &flag,
        );
        assert_eq!(code, 0, "{said:?}");
        let steps = find_sentences(&said, Topic::Step).join("\n");
        assert!(
            steps.contains(" s, delayed by 1."),
            "the time is that which it took: {steps}"
        );
    }
}
