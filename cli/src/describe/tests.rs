//! Tests of the descriptions of GPUs in each state.

use gpumon_probe::model::{
    Absence, Condition, ConditionKind, GpuProcess, Reading, RecoveryAction, Severity,
    ThrottleReason,
};

use super::*;
use crate::table::examples::{self, GIB, NOW_MS};

fn example_gpu() -> GpuSample {
    examples::example_sample(1).gpus.remove(0)
}

fn build_context(is_one_shot: bool) -> Context {
    Context {
        now_ms: NOW_MS,
        is_one_shot,
    }
}

fn make_condition(severity: Severity, kind: ConditionKind) -> Condition {
    let text = "A link is down: it is slow; see how to mend it. More is to be said.".to_owned();
    Condition {
        since_ms: 0,
        severity,
        text,
        kind,
    }
}

fn list_phrases(gpu: &GpuSample) -> Vec<(String, String)> {
    list_gpu_phrases(gpu, build_context(false))
        .into_iter()
        .map(|phrase| (phrase.short, phrase.long))
        .collect()
}

fn make_suspected_hang(differing: Vec<GpuProcess>) -> ConditionKind {
    ConditionKind::SuspectedHang {
        power_watts: 123.2,
        pids: vec![4_194_304],
        waiting: vec![1, 2],
        differing,
    }
}

/// Returns every kind of condition, each with long numbers.
fn list_all_conditions() -> Vec<ConditionKind> {
    use gpumon_probe::model::ThrottleReason::*;
    let reasons = vec![
        SwPowerCap,
        HwSlowdown,
        SyncBoost,
        SwThermalSlowdown,
        HwThermalSlowdown,
        HwPowerBrakeSlowdown,
    ];
    let recoveries = [
        RecoveryAction::None,
        RecoveryAction::GpuReset,
        RecoveryAction::NodeReboot,
        RecoveryAction::DrainP2p,
        RecoveryAction::DrainAndReset,
    ];
    let mut all: Vec<ConditionKind> = recoveries
        .into_iter()
        .map(|action| ConditionKind::RecoveryNeeded { action })
        .collect();
    all.extend([
        ConditionKind::Throttled {
            reasons,
            limit_watts: None,
            gpu_celsius: None,
        },
        ConditionKind::Throttled {
            reasons: vec![HwSlowdown],
            limit_watts: None,
            gpu_celsius: None,
        },
        ConditionKind::HeldIdle {
            bytes: GIB,
            idle_ms: 7_000_000,
            pids: vec![7],
        },
        ConditionKind::MemoryNearlyFull {
            free_bytes: GIB - 1,
            total_bytes: 80 * GIB,
        },
        ConditionKind::MemoryFilling {
            left_ms: 3_500_000,
            bytes_per_second: 1e9,
            growing: Vec::new(),
        },
        make_suspected_hang(Vec::new()),
        make_suspected_hang(vec![GpuProcess {
            gpu: 63,
            pid: 4_194_304,
        }]),
        ConditionKind::SlowerThanItself {
            sm_mhz: 1_410.0,
            usual_sm_mhz: 1_980.0,
            power_watts: 330.0,
            usual_power_watts: 500.0,
            siblings: vec![1, 2],
        },
        ConditionKind::BelowBaseline {
            workload: "copy".to_owned(),
            dtype: "fp32".to_owned(),
            median_us: 3_000.0,
            baseline_us: 1_000.0,
            measured_ms: 0,
            baseline_ms: 0,
        },
        ConditionKind::HeldByNobody { bytes: 1023 << 20 },
        ConditionKind::EccUncorrected { count: 1 },
        ConditionKind::EccUncorrected { count: 12_345 },
        ConditionKind::PageRetirementPending,
        ConditionKind::NvLinkDown { links: vec![17] },
        ConditionKind::NvLinkDown {
            links: (0..18).collect(),
        },
        ConditionKind::PcieDegraded {
            width: 16,
            max_width: 16,
        },
        ConditionKind::Xid {
            pid: None,
            code: 119,
            count: 123,
            last_ms: 0,
        },
    ]);
    all
}

#[test]
fn short_phrases_fit_reserved_width() {
    let mut gpu = example_gpu();
    let since_ms = NOW_MS - 7_000_000;
    let healths = [
        Health::Asleep { since_ms },
        Health::Hung { since_ms },
        Health::Lost { since_ms },
        Health::Failed {
            since_ms,
            reason: Absence::DriverError { code: 999 },
            meaning: "unknown error (NVML error 999)".to_owned(),
            advice: "restart the container".to_owned(),
        },
    ];
    let mut phrases: Vec<Phrase> = Vec::new();
    for health in healths {
        gpu.health = health;
        phrases.extend(list_gpu_phrases(&gpu, build_context(true)));
    }
    gpu.health = Health::Ok;
    for kind in list_all_conditions() {
        gpu.conditions = vec![make_condition(Severity::Warning, kind)];
        phrases.extend(list_gpu_phrases(&gpu, build_context(false)));
    }
    gpu.conditions.clear();
    for reason in [
        ThrottleReason::ApplicationsClocksSetting,
        ThrottleReason::DisplayClockSetting,
    ] {
        gpu.throttle_reasons = Reading::Now(vec![reason]);
        phrases.extend(list_gpu_phrases(&gpu, build_context(true)));
    }
    assert!(phrases.len() > 20);
    for phrase in phrases {
        assert!(
            (1..=Phrase::MAX_SHORT_WIDTH).contains(&phrase.short.width()),
            "{}",
            phrase.short
        );
        assert!(
            phrase.long.width() >= phrase.short.width() || phrase.long.starts_with("A link"),
            "{}",
            phrase.long
        );
    }
}

#[test]
fn most_important_phrase_comes_first() {
    let mut gpu = example_gpu();
    gpu.conditions = vec![
        make_condition(
            Severity::Notice,
            ConditionKind::Throttled {
                reasons: vec![ThrottleReason::SwPowerCap],
                limit_watts: None,
                gpu_celsius: None,
            },
        ),
        make_condition(
            Severity::Warning,
            ConditionKind::NvLinkDown { links: vec![3] },
        ),
        make_condition(
            Severity::Critical,
            ConditionKind::Xid {
                pid: None,
                code: 79,
                count: 1,
                last_ms: 0,
            },
        ),
    ];
    let shorts: Vec<String> = list_phrases(&gpu)
        .into_iter()
        .map(|(short, _)| short)
        .collect();
    assert_eq!(
        shorts,
        ["Xid 79: fell off the bus", "NVLink 3 down", "power-capped"]
    );
    assert_eq!(
        list_phrases(&gpu)[1].1,
        "NVLink 3 down",
        "advice is left to views that have room for sentences"
    );
}

#[test]
fn unreadable_gpu_shows_duration_and_remedy() {
    let mut gpu = example_gpu();
    gpu.health = Health::Lost {
        since_ms: NOW_MS - 720_000,
    };
    let [(short, long)] = list_phrases(&gpu).try_into().unwrap();
    assert_eq!(short, "GPU lost for 12 min");
    assert_eq!(long, "GPU lost since 09:01:20: see gpumon doctor");
    gpu.health = Health::Hung {
        since_ms: NOW_MS - 1_000,
    };
    let [(short, long)] = list_phrases(&gpu).try_into().unwrap();
    assert_eq!(
        short, "not responding",
        "what was found out just now has no history"
    );
    assert_eq!(
        long,
        "not responding (driver hang), showing the last values"
    );
    gpu.uuid = None;
    assert_eq!(
        list_phrases(&gpu)[0].1,
        "not responding (driver hang): see gpumon doctor",
        "it has no last values"
    );
}

#[test]
fn phrase_shows_current_free_memory_with_unit() {
    let mut gpu = example_gpu();
    let kind = ConditionKind::MemoryNearlyFull {
        free_bytes: 0,
        total_bytes: 141 * GIB,
    };
    gpu.conditions = vec![make_condition(Severity::Warning, kind)];
    gpu.memory.free_bytes = Reading::Now(960 << 20);
    assert_eq!(
        list_phrases(&gpu)[0],
        (
            "memory: 960 MiB left".to_owned(),
            "memory nearly full: 960 MiB left".to_owned()
        )
    );
    gpu.memory.free_bytes = Reading::Absent(Absence::NoAnswer);
    assert_eq!(
        list_phrases(&gpu)[0].0,
        "memory: 0 B left",
        "of the same sample"
    );
}

#[test]
fn one_shot_output_describes_problems_from_readings() {
    let mut gpu = example_gpu();
    gpu.throttle_reasons = Reading::Now(vec![
        ThrottleReason::HwSlowdown,
        ThrottleReason::HwThermalSlowdown,
    ]);
    gpu.memory.free_bytes = Reading::Now(GIB);
    let shorts = |context| {
        list_gpu_phrases(&gpu, context)
            .into_iter()
            .map(|phrase| phrase.short)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        shorts(build_context(true)),
        ["thermal slowdown (HW)", "memory: 1.00 GiB left"]
    );
    assert_eq!(shorts(build_context(false)), [""; 0]);
}

#[test]
fn growing_memory_is_shown_with_rate() {
    let mut gpu = example_gpu();
    let kind = ConditionKind::MemoryFilling {
        left_ms: 40_000,
        bytes_per_second: GIB as f64,
        growing: Vec::new(),
    };
    gpu.conditions = vec![make_condition(Severity::Critical, kind)];
    let [phrase] = list_gpu_phrases(&gpu, build_context(false))
        .try_into()
        .unwrap();
    assert_eq!(
        (phrase.short.as_str(), phrase.level),
        ("full in 40 s", Level::Act)
    );
    assert_eq!(
        phrase.long,
        "memory full in about 40 s: grows by 1.00 GiB/s"
    );
}

#[test]
fn limits_are_shown_until_they_are_outdated() {
    let mut gpu = example_gpu();
    assert_eq!(find_limits_phrase(&gpu, NOW_MS), None);
    let mut show = |main, percent, now_ms| {
        gpu.limits = Reading::Earlier {
            value: examples::example_limits(&[(main, percent)]),
            at_ms: NOW_MS,
        };
        find_limits_phrase(&gpu, now_ms).map(|phrase| (phrase.short, phrase.long))
    };
    let (short, long) = show(LimitClass::Host, 62.4, NOW_MS + 30_000).unwrap();
    assert_eq!(short, "Host-bound 62 %");
    assert_eq!(
        long,
        "Host-bound 62 %: A process uses 100 % of a core while the GPU waits."
    );
    assert_eq!(show(LimitClass::Host, 62.4, NOW_MS + 30_001), None);
    let mut hostile = example_gpu();
    let mut limits = examples::example_limits(&[(LimitClass::Host, 62.4)]);
    limits.text = "a\u{1b}[2Jb".to_owned();
    hostile.limits = Reading::Now(limits);
    let phrase = find_limits_phrase(&hostile, NOW_MS).unwrap();
    assert_eq!(phrase.long, "Host-bound 62 %: a [2Jb");
    assert_eq!(show(LimitClass::Idle, 80.0, NOW_MS), None);
    for main in LimitClass::ALL {
        let short = show(main, 100.0, NOW_MS).map_or(String::new(), |(short, _)| short);
        assert!(short.len() <= Phrase::MAX_SHORT_WIDTH, "{short}");
    }
}
