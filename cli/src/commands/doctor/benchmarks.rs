//! What benchmarks have shown of each GPU, beside its baseline and beside its siblings.

use std::path::Path;

use gpumon_probe::benchmarks::{self, Benchmarks, FILE};

use super::{super::bench::dated, driver::Answer, finding::Finding, gpus::name};

const CURE: &str = "check power limit, clocks and cooling, then run `gpumon bench --baseline` again, or `gpumon bench \
                    --save-baseline` if the change is intended";

pub(super) fn check(answer: &Answer, data_dir: Option<&Path>) -> Vec<Finding> {
    let Some(file) = data_dir.map(|folder| folder.join(FILE)) else { return Vec::new() };
    match benchmarks::read(&file) {
        Ok(known) => {
            let gpus = answer.inventory.gpus.iter();
            gpus.filter_map(|gpu| Some((gpu.index, gpu.uuid.as_deref()?)))
                .flat_map(|(index, uuid)| of_one(&known, index, uuid))
                .collect()
        }
        Err(error) => {
            let text = format!("{} cannot be read: {error}", file.display());
            let cure = "move the file away, and store baselines with `gpumon bench --save-baseline`";
            vec![Finding::warning("benchmarks", text, cure)]
        }
    }
}

fn of_one(known: &Benchmarks, index: u32, uuid: &str) -> Vec<Finding> {
    let slower = known.below_baseline(uuid).map(|below| {
        let text = format!(
            "below its baseline: {} ({}) took {}, and {} at its baseline ({:.2}x)",
            below.latest.workload,
            below.latest.dtype,
            dated(below.latest.time.median_us, below.latest.at_ms),
            dated(below.baseline.time.median_us, below.baseline.at_ms),
            below.ratio,
        );
        Finding::warning(name(index), text, CURE)
    });
    let slowest = known.below_siblings(uuid).map(|below| {
        let text = format!(
            "slower than GPUs of the same model: {} ({}) took {}, and {} on {} ({:.2}x)",
            below.baseline.workload,
            below.baseline.dtype,
            dated(below.baseline.time.median_us, below.baseline.at_ms),
            super::super::bench::time(below.siblings.median_us),
            if below.siblings.count == 1 { "another".to_owned() } else { format!("{} others", below.siblings.count) },
            below.ratio,
        );
        Finding::warning(name(index), text, CURE)
    });
    slower.into_iter().chain(slowest).collect()
}

#[cfg(test)]
mod tests {
    use gpumon_probe::benchmarks::{Interval, Measurement};

    use super::{super::finding::Verdict, *};

    #[test]
    fn what_is_below_its_baseline_or_its_siblings_is_told_with_both_figures() {
        let measured = |median_us| {
            vec![Measurement {
                workload: "copy".to_owned(),
                dtype: "fp32".to_owned(),
                n: 8,
                at_ms: 1_763_640_000_000,
                time: Interval { median_us, low_us: median_us, high_us: median_us },
                gpumon: "0.2.0".to_owned(),
                cuda: None,
                limit_watts: None,
                sm_mhz: None,
            }]
        };
        let mut known = Benchmarks::default();
        known.save_baseline("GPU-a", "NVIDIA H200", measured(1000.0));
        assert_eq!(of_one(&known, 0, "GPU-a"), []);
        known.save_latest("GPU-a", measured(3000.0));
        let [finding] = &of_one(&known, 0, "GPU-a")[..] else { panic!() };
        let text = "below its baseline: copy (fp32) took 3.00 ms on 2025-11-20, and 1.00 ms on 2025-11-20 at its baseline \
                    (0.33x)";
        assert_eq!((finding.verdict, &*finding.check, &*finding.text), (Verdict::Warning, "gpu 0", text));
        known.save_baseline("GPU-b", "NVIDIA H200", measured(1250.0));
        let [finding] = &of_one(&known, 1, "GPU-b")[..] else { panic!() };
        assert!(finding.text.ends_with("copy (fp32) took 1.25 ms on 2025-11-20, and 1.00 ms on another (0.80x)"));
        known.save_baseline("GPU-b", "NVIDIA H200", measured(1100.0));
        assert_eq!(of_one(&known, 1, "GPU-b"), []);
        assert_eq!(of_one(&known, 2, "GPU-c"), [], "no baseline is no finding");
    }
}
