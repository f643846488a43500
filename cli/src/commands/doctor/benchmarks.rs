//! What benchmarks have shown of each GPU, beside its baseline and beside its siblings.

use std::path::Path;

use gpumon_probe::benchmarks::{self, Benchmarks, FILE, Measurement};

use super::{
    super::bench::{format_dated, time},
    finding::Finding,
    gpus::name,
};
use crate::driver::Answer;

const CURE: &str = "check power limit, clocks and cooling, then run `gpumon bench --baseline` again, or `gpumon bench \
                    --save-baseline` if the change is intended";

pub(super) fn check(answer: &Answer, data_dir: Option<&Path>) -> Vec<Finding> {
    let Some(file) = data_dir.map(|folder| folder.join(FILE)) else {
        return Vec::new();
    };
    match benchmarks::read(&file) {
        Ok(known) => {
            let gpus = answer.inventory.gpus.iter();
            gpus.filter_map(|gpu| Some(of_one(&known, gpu.index, gpu.uuid.as_deref()?)))
                .flatten()
                .collect()
        }
        Err(error) => {
            let text = format!("{} cannot be read: {error}", file.display());
            let cure =
                "move the file away, and store baselines with `gpumon bench --save-baseline`";
            vec![Finding::warning("benchmarks", text, cure)]
        }
    }
}

fn of_one(known: &Benchmarks, index: u32, uuid: &str) -> Vec<Finding> {
    let took = |result: &Measurement| {
        let took = format_dated(result.time.median_us, result.at_ms);
        format!("{} ({}) took {took}", result.workload, result.dtype)
    };
    let slower = known.below_baseline(uuid).map(|below| {
        let (latest, before) = (took(&below.latest), &below.baseline);
        let before = format_dated(before.time.median_us, before.at_ms);
        let ratio = below.ratio;
        format!("below its baseline: {latest}, and {before} at its baseline ({ratio:.2}x)")
    });
    let slowest = known.below_siblings(uuid).map(|below| {
        let (own, theirs) = (took(&below.baseline), time(below.siblings.median_us));
        let others = match below.siblings.count {
            1 => "another".to_owned(),
            count => format!("{count} others"),
        };
        let ratio = below.ratio;
        format!("slower than GPUs of the same model: {own}, and {theirs} on {others} ({ratio:.2}x)")
    });
    let texts = slower.into_iter().chain(slowest);
    texts
        .map(|text| Finding::warning(name(index), text, CURE))
        .collect()
}

#[cfg(test)]
mod tests {
    use gpumon_probe::benchmarks::Interval;

    use super::{super::finding::Verdict, *};

    #[test]
    fn what_is_below_its_baseline_or_its_siblings_is_told_with_both_figures() {
        let measured = |median_us| {
            vec![Measurement {
                workload: "copy".to_owned(),
                dtype: "fp32".to_owned(),
                n: 8,
                at_ms: 1_763_640_000_000,
                time: Interval {
                    median_us,
                    low_us: median_us,
                    high_us: median_us,
                },
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
        let [finding] = &of_one(&known, 0, "GPU-a")[..] else {
            panic!()
        };
        let text = "below its baseline: copy (fp32) took 3.00 ms on 2025-11-20, and 1.00 ms on 2025-11-20 at its baseline \
                    (0.33x)";
        assert_eq!(
            (finding.verdict, &*finding.check, &*finding.text),
            (Verdict::Warning, "gpu 0", text)
        );
        known.save_baseline("GPU-b", "NVIDIA H200", measured(1250.0));
        let [finding] = &of_one(&known, 1, "GPU-b")[..] else {
            panic!()
        };
        assert!(
            finding.text.ends_with(
                "copy (fp32) took 1.25 ms on 2025-11-20, and 1.00 ms on another (0.80x)"
            )
        );
        known.save_baseline("GPU-b", "NVIDIA H200", measured(1100.0));
        assert_eq!(of_one(&known, 1, "GPU-b"), []);
        assert_eq!(of_one(&known, 2, "GPU-c"), [], "no baseline is no finding");
    }
}
