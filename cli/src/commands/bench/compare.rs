//! Comparison of new results with earlier results or baselines.

use std::{fs::File, path::Path};

use anyhow::Context;
use gpumon_probe::{
    benchmarks::{Benchmarks, Interval},
    bounded,
};
use gpumon_workload::protocol::{Backend, Dtype, Outcome, Shape};
use serde::{Deserialize, Serialize};

use super::baseline::measurement;
use crate::exit::{Failure, usage};

/// The maximum size of a file of results in bytes. Results of every workload and type on hundreds
/// of GPUs are smaller.
const LARGEST: usize = 64 << 20;

/// The results that new ones are compared with.
#[derive(Debug)]
pub(crate) enum Earlier {
    /// Earlier results, in the order in which they were written.
    Results(Vec<Old>),
    /// The baselines of all GPUs.
    Baselines(Benchmarks),
}

/// The fields of a result that identify its work and time, which every version has written.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Old {
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
pub(super) struct Compared {
    /// The old median divided by the new one; more than 1 is faster.
    pub(super) ratio: f64,
    /// Whether the new median is slower by more than the uncertainty of both medians.
    pub(super) is_slower: bool,
    /// The same ratio for the median of the baselines of other GPUs of the same model; `None`
    /// without such GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) siblings: Option<f64>,
    /// The old median in microseconds.
    pub(super) before_us: f64,
    /// The time of the old measurement in milliseconds since 1970, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) before_ms: Option<u64>,
}

impl Earlier {
    /// Reads results from a file with one JSON object per line. Lines that are no results, such as
    /// errors, are skipped.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = File::open(path).and_then(|file| bounded::text_of(file, LARGEST));
        let text = text
            .with_context(|| format!("cannot read {shown}"))
            .map_err(Failure::usage)?;
        let results: Vec<Old> = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        if results.is_empty() {
            let cure = "give what `gpumon bench --json` has written";
            return Err(usage!("there is no result in {shown}: {cure}"));
        }
        Ok(Self::Results(results))
    }

    pub(super) fn is_baselines(&self) -> bool {
        matches!(self, Self::Baselines(_))
    }

    /// Compares an outcome with the baseline of the same GPU, or with the last result of the same
    /// work, preferably on the same device; `None` if no result matches.
    pub(super) fn beside(&self, outcome: &Outcome) -> Option<Compared> {
        match self {
            Self::Results(results) => beside_results(results, outcome),
            Self::Baselines(baselines) => beside_baselines(baselines, outcome),
        }
    }
}

impl Compared {
    fn new(new: &Interval, old: &Interval, before_ms: Option<u64>) -> Option<Self> {
        let is_slower = new.is_slower(old);
        Some(Self {
            ratio: new.ratio(old)?,
            is_slower,
            siblings: None,
            before_us: old.median_us,
            before_ms,
        })
    }
}

fn beside_baselines(baselines: &Benchmarks, outcome: &Outcome) -> Option<Compared> {
    let uuid = outcome
        .device
        .uuid
        .as_deref()
        .filter(|_| outcome.backend == Backend::Cuda)?;
    let new = measurement(outcome, None)?;
    let old = baselines
        .baseline(uuid)
        .iter()
        .find(|old| old.is_same_work(&new))?;
    let siblings = baselines
        .siblings(uuid, &new)
        .map(|siblings| siblings.median_us / new.time.median_us);
    Some(Compared {
        siblings,
        ..Compared::new(&new.time, &old.time, Some(old.at_ms))?
    })
}

fn beside_results(results: &[Old], outcome: &Outcome) -> Option<Compared> {
    let is_same = |old: &&Old| {
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
        |old: &&Old| old.device.uuid == outcome.device.uuid && old.to.uuid.as_ref() == to;
    // Other pairs of GPUs may have other links, so a result of another pair is used only if it is
    // the only one.
    let may_stand_for_it = |_: &&Old| to.is_none() || all().count() == 1;
    let old = all()
        .find(is_there)
        .or_else(|| all().find(may_stand_for_it))?;
    let (old, new) = match (&old.device_time, &outcome.device_time) {
        (Some(old), Some(new)) => (old, new),
        _ => (old.host_time.as_ref()?, outcome.host_time.as_ref()?),
    };
    Compared::new(&new.into(), old, None)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use gpumon_probe::benchmarks::Measurement;
    use gpumon_workload::protocol::BenchJob;

    use super::{super::fuzzing::make_outcome, *};

    fn earlier(text: &str) -> Result<Earlier, Failure> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        Earlier::read(file.path())
    }

    fn compared(ratio: f64, before_us: f64) -> Compared {
        Compared {
            ratio,
            is_slower: false,
            siblings: None,
            before_us,
            before_ms: None,
        }
    }

    #[test]
    fn a_baseline_is_that_of_the_same_gpu_and_its_siblings_stand_beside_it() {
        let stored = |us, at_ms| {
            vec![Measurement {
                at_ms,
                ..measurement(&make_outcome("", us), None).unwrap()
            }]
        };
        let mut baselines = Benchmarks::default();
        baselines.save_baseline("GPU-a", "NVIDIA H200", stored(100.0, 7));
        baselines.save_baseline("GPU-b", "NVIDIA H200", stored(80.0, 8));
        baselines.save_baseline("GPU-c", "NVIDIA L4", stored(1.0, 9));
        let earlier = Earlier::Baselines(baselines);
        let expected = Compared {
            ratio: 0.5,
            is_slower: true,
            siblings: Some(0.4),
            before_us: 100.0,
            before_ms: Some(7),
        };
        assert_eq!(
            earlier.beside(&make_outcome("GPU-a", 200.0)),
            Some(expected)
        );
        assert_eq!(
            earlier
                .beside(&make_outcome("GPU-c", 1.0))
                .unwrap()
                .siblings,
            None
        );
        assert_eq!(
            earlier.beside(&make_outcome("GPU-d", 200.0)),
            None,
            "none stands for another"
        );
        assert_eq!(
            earlier.beside(&Outcome {
                n: 5,
                ..make_outcome("GPU-a", 100.0)
            }),
            None
        );
    }

    #[test]
    fn the_same_work_is_found_and_its_intervals_decide() {
        let line = |outcome: &Outcome| serde_json::to_string(outcome).unwrap();
        let text = [
            line(&make_outcome("GPU-b", 900.0)),
            line(&make_outcome("GPU-a", 100.0)),
            line(&make_outcome("GPU-c", 500.0)),
        ];
        let earlier = earlier(&format!("{}\n{{\"error\":\"x\"}}\n", text.join("\n"))).unwrap();
        let compare = |uuid, us| earlier.beside(&make_outcome(uuid, us)).unwrap();
        assert_eq!(compare("GPU-a", 100.0), compared(1.0, 100.0));
        assert_eq!(compare("GPU-a", 50.0), compared(2.0, 100.0));
        assert!(!compare("GPU-a", 101.5).is_slower, "the intervals meet");
        assert!(compare("GPU-a", 125.0).is_slower);
        assert_eq!(
            compare("GPU-new", 250.0).ratio.to_bits(),
            2.0_f64.to_bits(),
            "the last of another device"
        );
        let other = Outcome {
            n: 5,
            ..make_outcome("GPU-a", 100.0)
        };
        assert_eq!(earlier.beside(&other), None, "another size is other work");
    }

    #[test]
    fn of_several_pairs_none_stands_for_another() {
        let between = |from: &str, to: &str, us| {
            let mut outcome = make_outcome(from, us);
            outcome.to = Some(gpumon_workload::protocol::DeviceName {
                uuid: Some(to.to_owned()),
                ..outcome.device.clone()
            });
            outcome
        };
        let line = |outcome: &Outcome| serde_json::to_string(outcome).unwrap();
        let [one, other] = [
            between("GPU-a", "GPU-b", 100.0),
            between("GPU-b", "GPU-a", 200.0),
        ];
        let both = earlier(&format!("{}\n{}\n", line(&one), line(&other))).unwrap();
        assert_eq!(both.beside(&one), Some(compared(1.0, 100.0)));
        assert_eq!(both.beside(&between("GPU-a", "GPU-c", 100.0)), None);
        let single = earlier(&line(&one)).unwrap();
        assert!(
            single.beside(&between("GPU-x", "GPU-y", 100.0)).is_some(),
            "another machine has other GPUs"
        );
    }

    #[test]
    fn what_has_no_result_is_refused() {
        let said = |text: &str| earlier(text).unwrap_err().message().unwrap();
        let job = serde_json::to_string(&BenchJob::default()).unwrap();
        for text in ["", "nonsense", &job] {
            assert!(said(text).contains("gpumon bench --json"), "{text}");
        }
        assert!(
            Earlier::read(Path::new("/nowhere/old.json"))
                .unwrap_err()
                .message()
                .unwrap()
                .contains("/nowhere")
        );
    }
}
