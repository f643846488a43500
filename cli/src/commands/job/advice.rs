//! What to do otherwise the next time, in a sentence or two.

use gpumon_probe::{stat::Window, units::list};

use super::measure::{Measured, MeasuredDevice};
use crate::commands::figures::{MEMORY_PEAK, SM_ACTIVE, TENSOR_ACTIVE, THROTTLED, UTILIZATION};

/// Nothing can be said of less.
const LEAST_MS: u64 = 60_000;

/// A GPU on which so little ran was not used.
const UNUSED_IDLE_PERCENT: f64 = 99.9;

const MUCH_IDLE_PERCENT: f64 = 30.0;
const LOW_UTILIZATION_PERCENT: f64 = 40.0;
const GOOD_UTILIZATION_PERCENT: f64 = 70.0;
const BUSY_SM_PERCENT: f64 = 50.0;
const LOW_TENSOR_PERCENT: f64 = 1.0;
const LITTLE_MEMORY: f64 = 0.2;
const MUCH_THROTTLED_PERCENT: f64 = 20.0;

/// At most two sentences, the most telling first.
pub(super) fn give_advice(measured: &Measured, is_shared: bool) -> Vec<String> {
    let known: Vec<_> = measured
        .devices
        .iter()
        .filter(|device| device.known_ms >= LEAST_MS)
        .collect();
    if known.is_empty() {
        return vec!["The job has held its GPUs too briefly for advice.".to_owned()];
    }
    let (unused, used): (Vec<_>, Vec<_>) = known.into_iter().partition(|device| is_unused(device));
    let mut sentences = Vec::new();
    sentences.extend(of_unused(&unused, used.len()));
    sentences.extend(of_used(&used, is_shared));
    sentences.truncate(2);
    sentences
}

fn is_unused(device: &MeasuredDevice) -> bool {
    device
        .idle_percent
        .is_some_and(|idle| idle >= UNUSED_IDLE_PERCENT)
}

fn of_unused(unused: &[&MeasuredDevice], used: usize) -> Option<String> {
    if unused.is_empty() {
        return None;
    }
    let names: Vec<_> = unused.iter().map(|device| name(device)).collect();
    let (names, were) = (list(&names), if names.len() == 1 { "was" } else { "were" });
    Some(match used {
        0 => format!(
            "{names} {were} never used: check that the program finds a GPU, or request none."
        ),
        1 => format!("{names} {were} never used: request one GPU."),
        used => format!("{names} {were} never used: request {used} GPUs."),
    })
}

fn of_used(used: &[&MeasuredDevice], is_shared: bool) -> Vec<String> {
    let mean = |value: fn(&MeasuredDevice) -> Option<f64>| {
        let values = used.iter().filter_map(|device| value(device));
        values.collect::<Window>().mean()
    };
    let mut sentences = Vec::new();
    if let Some(throttled) =
        mean(|device| device.figures.0[THROTTLED]).filter(|share| *share >= MUCH_THROTTLED_PERCENT)
    {
        sentences.push(format!(
            "Clocks were reduced for {throttled:.0} % of the time: see the conditions of each GPU, and tell an administrator \
             where heat is the reason."
        ));
    }
    let utilization = mean(|device| device.figures.0[UTILIZATION]);
    if let Some(idle) =
        mean(|device| device.idle_percent).filter(|share| *share >= MUCH_IDLE_PERCENT)
    {
        sentences.push(format!(
            "Nothing ran for {idle:.0} % of the time: let data loading, checkpoints and evaluation run beside the computation, \
             and end interactive jobs when they are not used."
        ));
    } else if let Some(percent) = utilization.filter(|percent| *percent < LOW_UTILIZATION_PERCENT) {
        sentences.push(format!(
            "GPU utilization was {percent:.0} % on average: try larger batches or more data loader workers, or a smaller GPU or \
             MIG instance."
        ));
    }
    let tensor = mean(|device| device.figures.0[TENSOR_ACTIVE])
        .filter(|percent| *percent < LOW_TENSOR_PERCENT);
    let is_busy = mean(|device| device.figures.0[SM_ACTIVE])
        .is_some_and(|percent| percent >= BUSY_SM_PERCENT);
    if tensor.is_some() && is_busy {
        sentences.push(
            "Tensor cores were hardly used: where it trains or infers, try bf16 or TF32."
                .to_owned(),
        );
    }
    let share = mean(|device| {
        Some(
            device.figures.0[MEMORY_PEAK]?
                / device.memory_total_bytes.filter(|total| *total > 0.0)?,
        )
    });
    if let Some(share) = share.filter(|share| *share < LITTLE_MEMORY && !is_shared) {
        let percent = share * 100.0;
        sentences.push(format!(
            "At most {percent:.0} % of the memory was used: a smaller GPU or a MIG instance is enough, or a larger batch fits."
        ));
    }
    if sentences.is_empty()
        && utilization.is_some_and(|percent| percent >= GOOD_UTILIZATION_PERCENT)
    {
        sentences.push("The GPUs were used well.".to_owned());
    }
    sentences
}

pub(super) fn name(device: &MeasuredDevice) -> String {
    if device.is_mig {
        format!("MIG device {}", device.index)
    } else {
        format!("GPU {}", device.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::figures::{COUNT, Figures};

    fn device(index: u32, idle: f64, values: [f64; COUNT]) -> MeasuredDevice {
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

    fn advice_on(devices: Vec<MeasuredDevice>) -> String {
        give_advice(
            &Measured {
                devices,
                all: Figures::default(),
            },
            false,
        )
        .join(" ")
    }

    #[test]
    fn each_waste_has_its_advice_and_none_has_praise() {
        let good = [85.0, 100.0, 80.0, 40.0, 60.0, 1.0, 1.0, 0.0];
        let with = |place: usize, value: f64| {
            let mut values = good;
            values[place] = value;
            values
        };
        let nothing = [0.0; COUNT];
        for (devices, told) in [
            (vec![device(0, 1.0, good)], "The GPUs were used well."),
            (
                vec![device(0, 1.0, good), device(1, 100.0, nothing)],
                "GPU 1 was never used: request one GPU.",
            ),
            (
                vec![
                    device(0, 1.0, good),
                    device(1, 0.0, good),
                    device(2, 100.0, nothing),
                    device(3, 100.0, nothing),
                ],
                "GPU 2 and GPU 3 were never used: request 2 GPUs.",
            ),
            (
                vec![device(0, 100.0, nothing)],
                "GPU 0 was never used: check that the program finds a GPU, or request none.",
            ),
            (
                vec![device(0, 62.0, with(0, 30.0))],
                "Nothing ran for 62 % of the time:",
            ),
            (
                vec![device(0, 5.0, with(0, 18.0))],
                "GPU utilization was 18 % on average:",
            ),
            (
                vec![device(0, 1.0, with(3, 0.0))],
                "Tensor cores were hardly used:",
            ),
            (
                vec![device(0, 1.0, with(4, 4.0))],
                "At most 5 % of the memory was used:",
            ),
            (
                vec![device(0, 1.0, with(7, 55.0))],
                "Clocks were reduced for 55 % of the time:",
            ),
            (
                vec![MeasuredDevice {
                    known_ms: 5_000,
                    ..device(0, 0.0, good)
                }],
                "The job has held its GPUs too briefly",
            ),
            (vec![device(0, 10.0, with(0, 55.0))], ""),
        ] {
            let advice = advice_on(devices);
            assert!(
                advice.starts_with(told) && (!told.is_empty() || advice.is_empty()),
                "{advice}"
            );
        }
        let much = advice_on(vec![
            device(1, 100.0, nothing),
            device(0, 62.0, [10.0, 1.0, 60.0, 0.0, 4.0, 1.0, 1.0, 55.0]),
        ]);
        assert_eq!(much.matches(". ").count() + 1, 2, "{much}");
    }
}
