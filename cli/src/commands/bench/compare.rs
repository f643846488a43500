//! Comparison of new results with earlier results or baselines.

use std::{fs::File, path::Path};

use anyhow::Context;
use gpumon_probe::{
    benchmarks::{Benchmarks, Interval},
    bounded,
};
use gpumon_workload::protocol::{Backend, Dtype, RunOutcome, Shape};
use serde::{Deserialize, Serialize};

use super::baseline::make_measurement;
use crate::exit::{Failure, usage};

/// The maximum size of a results file in bytes. Results of every workload and type on hundreds of
/// GPUs fit into it.
const MAX_FILE_BYTES: usize = 64 << 20;

/// The results that new ones are compared with.
#[derive(Debug)]
pub(crate) enum EarlierResults {
    /// Earlier results, in the order in which they were written.
    Results(Vec<OldResult>),
    /// The baselines of all GPUs.
    Baselines(Benchmarks),
}

/// The fields of a result that identify its work and time, which every version has written.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct OldResult {
    id: String,
    backend: Backend,
    dtype: Dtype,
    n: u64,
    #[serde(default)]
    shape: Option<Shape>,
    #[serde(default)]
    device: OldDevice,
    #[serde(default)]
    to: OldDevice,
    device_time: Option<Interval>,
    host_time: Option<Interval>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct OldDevice {
    uuid: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Comparison {
    /// The old median divided by the new one; more than 1 is faster.
    pub(super) ratio: f64,
    /// Whether the new median is slower by more than the combined uncertainty of the old and the
    /// new median.
    pub(super) is_slower: bool,
    /// The median of the baselines of other GPUs of the same model, divided by the new median;
    /// `None` if there are no such GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) siblings: Option<f64>,
    /// The old median in microseconds.
    pub(super) before_us: f64,
    /// The time of the old measurement in milliseconds since 1970, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) before_ms: Option<u64>,
}

impl EarlierResults {
    /// Reads results from a file with one JSON object per line. Lines that are not results, such as
    /// errors, are skipped.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = File::open(path).and_then(|file| bounded::read_text_from(file, MAX_FILE_BYTES));
        let text = text
            .with_context(|| format!("cannot read {shown}"))
            .map_err(Failure::usage)?;
        let results: Vec<OldResult> = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        if results.is_empty() {
            let cure = "give a file written by `gpumon bench --json`";
            return Err(usage!("{shown} contains no results: {cure}"));
        }
        Ok(Self::Results(results))
    }

    pub(super) fn are_baselines(&self) -> bool {
        matches!(self, Self::Baselines(_))
    }

    /// Compares an outcome with the baseline of the same GPU, or with the last result of the same
    /// work, preferably on the same device; `None` if no result matches.
    pub(super) fn compare_with(&self, outcome: &RunOutcome) -> Option<Comparison> {
        match self {
            Self::Results(results) => compare_with_results(results, outcome),
            Self::Baselines(baselines) => compare_with_baselines(baselines, outcome),
        }
    }
}

impl Comparison {
    fn new(new: &Interval, old: &Interval, before_ms: Option<u64>) -> Option<Self> {
        let is_slower = new.is_slower(old);
        Some(Self {
            ratio: new.speed_ratio(old)?,
            is_slower,
            siblings: None,
            before_us: old.median_us,
            before_ms,
        })
    }
}

fn compare_with_baselines(baselines: &Benchmarks, outcome: &RunOutcome) -> Option<Comparison> {
    let uuid = outcome
        .device
        .uuid
        .as_deref()
        .filter(|_| outcome.backend == Backend::Cuda)?;
    let new = make_measurement(outcome, None)?;
    let old = baselines
        .find_baseline(uuid)
        .iter()
        .find(|old| old.is_same_work(&new))?;
    let siblings = baselines
        .find_siblings(uuid, &new)
        .map(|siblings| siblings.median_us / new.time.median_us);
    Some(Comparison {
        siblings,
        ..Comparison::new(&new.time, &old.time, Some(old.at_ms))?
    })
}

fn compare_with_results(results: &[OldResult], outcome: &RunOutcome) -> Option<Comparison> {
    let is_same = |old: &&OldResult| {
        (&*old.id, old.backend, old.dtype, old.n, old.shape)
            == (
                &*outcome.id,
                outcome.backend,
                outcome.dtype,
                outcome.n,
                outcome.shape,
            )
    };
    let all = || results.iter().rev().filter(is_same);
    let to = outcome.to.as_ref().and_then(|to| to.uuid.as_ref());
    let is_there =
        |old: &&OldResult| old.device.uuid == outcome.device.uuid && old.to.uuid.as_ref() == to;
    // Another pair of GPUs may have a faster or slower link, so its result is used only if no other
    // result of the same work exists.
    let may_stand_for_it = |_: &&OldResult| to.is_none() || all().count() == 1;
    let old = all()
        .find(is_there)
        .or_else(|| all().find(may_stand_for_it))?;
    let (old, new) = match (&old.device_time, &outcome.device_time) {
        (Some(old), Some(new)) => (old, new),
        _ => (old.host_time.as_ref()?, outcome.host_time.as_ref()?),
    };
    Comparison::new(&new.into(), old, None)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use gpumon_probe::benchmarks::Measurement;
    use gpumon_workload::protocol::BenchJob;

    use super::{super::fuzzing::make_outcome, *};

    fn read_earlier(text: &str) -> Result<EarlierResults, Failure> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        EarlierResults::read(file.path())
    }

    fn make_comparison(ratio: f64, before_us: f64) -> Comparison {
        Comparison {
            ratio,
            is_slower: false,
            siblings: None,
            before_us,
            before_ms: None,
        }
    }

    #[test]
    fn baseline_comparison_covers_same_gpu_and_its_siblings() {
        let stored = |us, at_ms| {
            vec![Measurement {
                at_ms,
                ..make_measurement(&make_outcome("", us), None).unwrap()
            }]
        };
        let mut baselines = Benchmarks::default();
        baselines.save_baseline("GPU-a", "NVIDIA H200", stored(100.0, 7));
        baselines.save_baseline("GPU-b", "NVIDIA H200", stored(80.0, 8));
        baselines.save_baseline("GPU-c", "NVIDIA L4", stored(1.0, 9));
        let earlier = EarlierResults::Baselines(baselines);
        let expected = Comparison {
            ratio: 0.5,
            is_slower: true,
            siblings: Some(0.4),
            before_us: 100.0,
            before_ms: Some(7),
        };
        assert_eq!(
            earlier.compare_with(&make_outcome("GPU-a", 200.0)),
            Some(expected)
        );
        assert_eq!(
            earlier
                .compare_with(&make_outcome("GPU-c", 1.0))
                .unwrap()
                .siblings,
            None
        );
        assert_eq!(
            earlier.compare_with(&make_outcome("GPU-d", 200.0)),
            None,
            "none stands for another"
        );
        assert_eq!(
            earlier.compare_with(&RunOutcome {
                n: 5,
                ..make_outcome("GPU-a", 100.0)
            }),
            None
        );
    }

    #[test]
    fn same_work_is_compared_by_confidence_intervals() {
        let line = |outcome: &RunOutcome| serde_json::to_string(outcome).unwrap();
        let text = [
            line(&make_outcome("GPU-b", 900.0)),
            line(&make_outcome("GPU-a", 100.0)),
            line(&make_outcome("GPU-c", 500.0)),
        ];
        let earlier = read_earlier(&format!("{}\n{{\"error\":\"x\"}}\n", text.join("\n"))).unwrap();
        let compare = |uuid, us| earlier.compare_with(&make_outcome(uuid, us)).unwrap();
        assert_eq!(compare("GPU-a", 100.0), make_comparison(1.0, 100.0));
        assert_eq!(compare("GPU-a", 50.0), make_comparison(2.0, 100.0));
        assert!(!compare("GPU-a", 101.5).is_slower, "the intervals meet");
        assert!(compare("GPU-a", 125.0).is_slower);
        assert_eq!(
            compare("GPU-new", 250.0).ratio.to_bits(),
            2.0_f64.to_bits(),
            "the last of another device"
        );
        let other = RunOutcome {
            n: 5,
            ..make_outcome("GPU-a", 100.0)
        };
        assert_eq!(
            earlier.compare_with(&other),
            None,
            "another size is other work"
        );
    }

    #[test]
    fn result_of_other_gpu_pair_is_not_used() {
        let between = |from: &str, to: &str, us| {
            let mut outcome = make_outcome(from, us);
            outcome.to = Some(gpumon_workload::protocol::DeviceName {
                uuid: Some(to.to_owned()),
                ..outcome.device.clone()
            });
            outcome
        };
        let line = |outcome: &RunOutcome| serde_json::to_string(outcome).unwrap();
        let [one, other] = [
            between("GPU-a", "GPU-b", 100.0),
            between("GPU-b", "GPU-a", 200.0),
        ];
        let both = read_earlier(&format!("{}\n{}\n", line(&one), line(&other))).unwrap();
        assert_eq!(both.compare_with(&one), Some(make_comparison(1.0, 100.0)));
        assert_eq!(both.compare_with(&between("GPU-a", "GPU-c", 100.0)), None);
        let single = read_earlier(&line(&one)).unwrap();
        assert!(
            single
                .compare_with(&between("GPU-x", "GPU-y", 100.0))
                .is_some(),
            "another machine has other GPUs"
        );
    }

    #[test]
    fn file_without_results_is_refused() {
        let said = |text: &str| read_earlier(text).unwrap_err().message().unwrap();
        let job = serde_json::to_string(&BenchJob::default()).unwrap();
        for text in ["", "nonsense", &job] {
            assert!(said(text).contains("gpumon bench --json"), "{text}");
        }
        assert!(
            EarlierResults::read(Path::new("/nowhere/old.json"))
                .unwrap_err()
                .message()
                .unwrap()
                .contains("/nowhere")
        );
    }
}
