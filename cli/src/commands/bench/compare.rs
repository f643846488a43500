//! Earlier results, and how fast a new one is beside its own.

use std::{fs, path::Path};

use anyhow::{Context, anyhow};
use gpumon_workload::protocol::{Backend, Dtype, Outcome, Shape, Times};
use serde::{Deserialize, Serialize};

use crate::exit::Failure;

/// Results that were written before, the last one last.
#[derive(Debug)]
pub(crate) struct Earlier(Vec<Old>);

/// As much of a result as tells which it is and how long it took: all that every version has written.
#[derive(Debug, Clone, Deserialize)]
struct Old {
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
    device_time: Option<Times>,
    host_time: Option<Times>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct OldDevice {
    uuid: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Compared {
    /// 1 is as fast, and more is faster: of the medians.
    pub(super) ratio: f64,
    /// Whether it is slower by more than both medians are uncertain.
    pub(super) is_slower: bool,
}

impl Earlier {
    /// Those in a file of one JSON object a line. What is no result, as an error, is left out.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}")).map_err(Failure::usage)?;
        let results: Vec<Old> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if results.is_empty() {
            let cure = "give what `gpumon bench --json` has written";
            return Err(Failure::usage(anyhow!("there is no result in {shown}: {cure}")));
        }
        Ok(Self(results))
    }

    /// Beside the last one of the same work, if possible on the same device; `None` where there is none.
    pub(super) fn beside(&self, outcome: &Outcome) -> Option<Compared> {
        let is_same = |old: &&Old| {
            (&*old.id, old.backend, old.dtype, old.n, old.shape)
                == (&*outcome.id, outcome.backend, outcome.dtype, outcome.n, outcome.shape)
        };
        let all = || self.0.iter().rev().filter(is_same);
        let to = outcome.to.as_ref().and_then(|to| to.uuid.as_ref());
        let is_there = |old: &&Old| old.device.uuid == outcome.device.uuid && old.to.uuid.as_ref() == to;
        // Between other GPUs there may be another link, so that of several pairs none stands for another.
        let may_stand_for_it = |_: &&Old| to.is_none() || all().count() == 1;
        let old = all().find(is_there).or_else(|| all().find(may_stand_for_it))?;
        let (old, new) = match (&old.device_time, &outcome.device_time) {
            (Some(old), Some(new)) => (old, new),
            _ => (old.host_time.as_ref()?, outcome.host_time.as_ref()?),
        };
        let ratio = old.median_us / new.median_us;
        ratio.is_finite().then_some(Compared { ratio, is_slower: new.low_us > old.high_us })
    }
}

#[cfg(test)]
mod tests {
    use gpumon_workload::protocol::BenchJob;

    use super::{super::fuzzing::outcome, *};

    fn earlier(text: &str) -> Result<Earlier, Failure> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        Earlier::read(file.path())
    }

    #[test]
    fn the_same_work_is_found_and_its_intervals_decide() {
        let line = |outcome: &Outcome| serde_json::to_string(outcome).unwrap();
        let text = [line(&outcome("GPU-b", 900.0)), line(&outcome("GPU-a", 100.0)), line(&outcome("GPU-c", 500.0))];
        let earlier = earlier(&format!("{}\n{{\"error\":\"x\"}}\n", text.join("\n"))).unwrap();
        let beside = |uuid, us| earlier.beside(&outcome(uuid, us)).unwrap();
        assert_eq!(beside("GPU-a", 100.0), Compared { ratio: 1.0, is_slower: false });
        assert_eq!(beside("GPU-a", 50.0), Compared { ratio: 2.0, is_slower: false });
        assert!(!beside("GPU-a", 101.5).is_slower, "the intervals meet");
        assert!(beside("GPU-a", 125.0).is_slower);
        assert_eq!(beside("GPU-new", 250.0).ratio.to_bits(), 2.0_f64.to_bits(), "the last of another device");
        let other = Outcome { n: 5, ..outcome("GPU-a", 100.0) };
        assert_eq!(earlier.beside(&other), None, "another size is other work");
    }

    #[test]
    fn of_several_pairs_none_stands_for_another() {
        let between = |from: &str, to: &str, us| {
            let mut outcome = outcome(from, us);
            outcome.to =
                Some(gpumon_workload::protocol::DeviceName { uuid: Some(to.to_owned()), ..outcome.device.clone() });
            outcome
        };
        let line = |outcome: &Outcome| serde_json::to_string(outcome).unwrap();
        let [one, other] = [between("GPU-a", "GPU-b", 100.0), between("GPU-b", "GPU-a", 200.0)];
        let both = earlier(&format!("{}\n{}\n", line(&one), line(&other))).unwrap();
        assert_eq!(both.beside(&one), Some(Compared { ratio: 1.0, is_slower: false }));
        assert_eq!(both.beside(&between("GPU-a", "GPU-c", 100.0)), None);
        let single = earlier(&line(&one)).unwrap();
        assert!(single.beside(&between("GPU-x", "GPU-y", 100.0)).is_some(), "another machine has other GPUs");
    }

    #[test]
    fn what_has_no_result_is_refused() {
        let said = |text: &str| earlier(text).unwrap_err().message().unwrap();
        let job = serde_json::to_string(&BenchJob::default()).unwrap();
        for text in ["", "nonsense", &job] {
            assert!(said(text).contains("gpumon bench --json"), "{text}");
        }
        assert!(Earlier::read(Path::new("/nowhere/old.json")).unwrap_err().message().unwrap().contains("/nowhere"));
    }
}
