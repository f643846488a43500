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

#[test]
fn each_inefficiency_has_advice() {
    let good = [85.0, 100.0, 80.0, 40.0, 60.0, 1.0, 1.0, 0.0];
    let with = |place: usize, value: f64| {
        let mut values = good;
        values[place] = value;
        values
    };
    let nothing = [0.0; FIGURE_COUNT];
    for (devices, reported) in [
        (vec![make_device(0, 1.0, good)], "The GPUs were used well."),
        (
            vec![make_device(0, 1.0, good), make_device(1, 100.0, nothing)],
            "GPU 1 was never used: request one GPU.",
        ),
        (
            vec![
                make_device(0, 1.0, good),
                make_device(1, 0.0, good),
                make_device(2, 100.0, nothing),
                make_device(3, 100.0, nothing),
            ],
            "GPU 2 and GPU 3 were never used: request 2 GPUs.",
        ),
        (
            vec![make_device(0, 100.0, nothing)],
            "GPU 0 was never used: check that the program finds a GPU, or request no GPU.",
        ),
        (
            vec![make_device(0, 62.0, with(0, 30.0))],
            "Nothing ran for 62 % of the time:",
        ),
        (
            vec![make_device(0, 5.0, with(0, 18.0))],
            "GPU utilization was 18 % on average:",
        ),
        (
            vec![make_device(0, 1.0, with(3, 0.0))],
            "Tensor cores were hardly used:",
        ),
        (
            vec![make_device(0, 1.0, with(4, 4.0))],
            "At most 5 % of the memory was used:",
        ),
        (
            vec![make_device(0, 1.0, with(7, 55.0))],
            "Clocks were reduced for 55 % of the time:",
        ),
        (
            vec![MeasuredDevice {
                known_ms: 5_000,
                ..make_device(0, 0.0, good)
            }],
            "The job held its GPUs for too short a time to give advice.",
        ),
        (vec![make_device(0, 10.0, with(0, 55.0))], ""),
    ] {
        let advice = join_advice(devices);
        assert!(
            advice.starts_with(reported) && (!reported.is_empty() || advice.is_empty()),
            "{advice}"
        );
    }
    let much = join_advice(vec![
        make_device(1, 100.0, nothing),
        make_device(0, 62.0, [10.0, 1.0, 60.0, 0.0, 4.0, 1.0, 1.0, 55.0]),
    ]);
    assert_eq!(much.matches(". ").count() + 1, 2, "{much}");
}
