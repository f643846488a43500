use std::collections::BTreeSet;

use gpumon_probe::model::{JobKind, LimitClass, LimitEvidence, LimitSummary};

use crate::commands::figures::{FIGURE_COUNT, Figures};

use super::*;

fn make_device(index: u32, idle: f64, values: [f64; FIGURE_COUNT]) -> MeasuredDevice {
    MeasuredDevice {
        uuid: format!("GPU-{index}"),
        index,
        name: None,
        is_mig: false,
        held_ms: 3_600_000,
        known_ms: 3_600_000,
        figures: Figures(values.map(Some)),
        idle_percent: Some(idle),
        memory_total_bytes: Some(80.0),
        limits: None,
        conditions: Vec::new(),
    }
}

fn join_advice(devices: Vec<MeasuredDevice>) -> String {
    give_advice(
        &MeasuredJob {
            devices,
            all: Figures::default(),
        },
        false,
    )
    .join(" ")
}

/// Returns a device that was limited by a cause for 70 % of the time.
fn make_limited_device(index: u32, cause: LimitClass) -> MeasuredDevice {
    let evidence = LimitEvidence {
        sm_percent: Some(9.0),
        gpu_percent: Some(97.0),
        ..LimitEvidence::default()
    };
    MeasuredDevice {
        limits: LimitSummary::new(10_000, [(cause, 70.0), (LimitClass::Idle, 30.0)], |_| {
            evidence
        }),
        ..make_device(index, 30.0, GOOD)
    }
}

const GOOD: [f64; FIGURE_COUNT] = [85.0, 100.0, 80.0, 40.0, 60.0, 1.0, 1.0, 0.0];
const NOTHING: [f64; FIGURE_COUNT] = [0.0; FIGURE_COUNT];

#[test]
fn each_inefficiency_has_advice() {
    let mut little_memory = GOOD;
    little_memory[MEMORY_PEAK_INDEX] = 4.0;
    let unused = |index| make_device(index, 100.0, NOTHING);
    for (devices, reported) in [
        (vec![make_device(0, 1.0, GOOD)], ""),
        (
            vec![make_device(0, 1.0, GOOD), unused(1)],
            "GPU 1 was never used: request one GPU.",
        ),
        (
            vec![
                make_device(0, 1.0, GOOD),
                make_device(1, 0.0, GOOD),
                unused(2),
                unused(3),
            ],
            "GPU 2 and GPU 3 were never used: request 2 GPUs.",
        ),
        (
            vec![unused(0)],
            "GPU 0 was never used: check that the program finds a GPU, or request no GPU.",
        ),
        (
            vec![make_device(0, 1.0, little_memory)],
            "At most 5 % of the memory was used:",
        ),
        (
            vec![make_limited_device(0, LimitClass::Latency)],
            "Kernels run 97 % of the time on 9 % of the SMs: they are small, or wait for each \
             other. Fuse kernels",
        ),
        (
            vec![make_limited_device(0, LimitClass::Host)],
            "Prepare data in worker processes or on the GPU,",
        ),
        (
            vec![MeasuredDevice {
                known_ms: 5_000,
                ..make_limited_device(0, LimitClass::Host)
            }],
            "The job held its GPUs for too short a time to give advice.",
        ),
    ] {
        let advice = join_advice(devices);
        assert!(
            advice.starts_with(reported) && (!reported.is_empty() || advice.is_empty()),
            "{advice}"
        );
    }
}

#[test]
fn report_has_shares_of_used_gpus() {
    let unused = MeasuredDevice {
        idle_percent: Some(100.0),
        ..make_limited_device(2, LimitClass::Idle)
    };
    let devices = vec![
        make_limited_device(0, LimitClass::Latency),
        make_limited_device(1, LimitClass::Latency),
        unused,
    ];
    let job = FoundJob {
        kind: JobKind::Slurm,
        label: "Slurm job 7".to_owned(),
        user: None,
        spans: Vec::new(),
        others: BTreeSet::new(),
    };
    let all = Figures::default();
    let measured = MeasuredJob { devices, all };
    let text = format_report(&job, &measured, 0, None);
    let lines: Vec<_> = text.lines().rev().take(3).collect();
    assert_eq!(
        lines[2],
        "GPU 0 and GPU 1 limited by: latency-bound 70 %, idle 30 %"
    );
    assert_eq!(lines[1], "GPU 2 was never used: request 2 GPUs.");
    assert!(
        lines[0].starts_with("GPU 0 and GPU 1: Kernels run"),
        "{text}"
    );
    let json = to_json(&job, &measured);
    assert_eq!(json["gpus"][0]["limits"]["shares"][0]["cause"], "latency");
    assert_eq!(json["advice"].as_array().unwrap().len(), 2);
}
