//! What is asked of the runner: one JSON object, which the terminal and the server alike give to
//! the process that works.

use std::time::Duration;

use clap::ValueEnum;
use gpumon_probe::{model::RunKind, tagged};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::Error};

use super::vocabulary::{Backend, Dtype, Engine, Extent, Shape};

/// What is asked, told apart by `kind`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schemars(rename = "RunJob")]
pub enum Job {
    /// Workloads by name, each measured and verified.
    Bench(BenchJob),
    /// Tutorial benchmarks: small programs in all their variants.
    #[serde(rename = "seeds")]
    Tutorials(TutorialsJob),
    /// Products without end, each of whose results is checked.
    Burn(BurnJob),
    /// A demonstration of memory that runs out.
    Oom(OomJob),
    /// Known loads, and what the probe reports of them.
    Selftest(SelftestJob),
}

/// Where to run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Where {
    /// On a GPU, on the CPU, or on both.
    pub backend: BackendChoice,
    /// The GPU: CUDA's index, or a UUID or its prefix; `all` for every GPU if a job can use
    /// several. The job fails if the GPU does not exist. `null` is GPU 0, if there is one.
    pub device: Option<String>,
    /// Whether to work on a GPU that somebody else uses, too.
    pub share: bool,
}

/// On what to run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum BackendChoice {
    /// On a GPU, or on the CPU where there is none.
    #[value(help = "GPU, or CPU if there is no GPU")]
    #[default]
    Auto,
    /// On a GPU.
    #[value(help = "GPU")]
    Cuda,
    /// On the CPU.
    #[value(help = "CPU, on all threads")]
    Cpu,
    /// On a GPU, then on the CPU.
    #[value(help = "GPU, then CPU")]
    Both,
}

/// Workloads to measure.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BenchJob {
    /// By name; all where none is named.
    pub ids: Vec<String>,
    /// Where.
    #[serde(rename = "where")]
    pub place: Where,
    /// The type of numbers; each workload's usual one where nobody says.
    pub dtype: Option<Dtype>,
    /// The size; each workload's usual one where nobody says.
    pub size: Option<Amount>,
    /// The shape of `matmul`, in place of a size.
    pub shape: Option<Shape>,
    /// By what it runs on a GPU.
    pub engine: Engine,
    /// Whether what takes two GPUs runs on each ordered pair of all that there are; all of that
    /// where nothing is named.
    pub pairs: bool,
    /// Whether a look is enough.
    pub quick: bool,
    /// Whether a GPU computes for three seconds before it is timed at what computing limits, until
    /// its clock is the one that its power allows.
    pub settle: bool,
    /// Exactly this, in the place of names, type and size; without any, what those say.
    pub works: Vec<BenchWork>,
}

/// One workload, in one type and size, on one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BenchWork {
    /// The workload.
    pub id: String,
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its size, as a result tells it.
    pub n: u64,
    /// The UUID of the GPU.
    pub gpu: String,
}

/// How large a workload is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Amount {
    /// So many elements of each array, or rows of each matrix.
    Count(u64),
    /// So many bytes for each array or matrix.
    Bytes(u64),
    /// So many times, of what a workload does over and over.
    Times(u64),
}

impl Amount {
    /// What comes to `n` for a workload of this kind; `None` where that has one size.
    pub fn of(n: u64, extent: Extent) -> Option<Self> {
        match extent {
            Extent::Fixed => None,
            Extent::Elements | Extent::Side => Some(Self::Count(n)),
            Extent::Times => Some(Self::Times(n)),
        }
    }

    /// What it comes to for a workload of this kind; `None` where that has no such size.
    pub fn n(self, extent: Extent, dtype: Dtype) -> Option<u64> {
        match (self, extent) {
            (Self::Count(count), Extent::Elements | Extent::Side)
            | (Self::Times(count), Extent::Times) => Some(count),
            (Self::Bytes(bytes), Extent::Elements) => Some(bytes.div_ceil(dtype.bytes())),
            (Self::Bytes(bytes), Extent::Side) => Some(bytes.div_ceil(dtype.bytes()).isqrt()),
            _ => None,
        }
    }
}

/// Tutorial benchmarks to run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TutorialsJob {
    /// `a` to `k5`; all where none is named.
    #[serde(rename = "rows")]
    pub cases: Vec<String>,
    /// Where.
    #[serde(rename = "where")]
    pub place: Where,
    /// Whether a look is enough.
    pub quick: bool,
}

/// How to burn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BurnJob {
    /// Where.
    #[serde(rename = "where")]
    pub place: Where,
    /// For how long, in seconds.
    pub seconds: f64,
    /// The share of the memory that is free to be filled, from 0 to 1.
    pub memory: f64,
    /// The type of numbers that are multiplied; where nobody says, bf16 on a GPU that multiplies
    /// that by tensor cores, and fp32 elsewhere.
    pub dtype: Option<Dtype>,
}

/// What to demonstrate.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OomJob {
    /// By name.
    pub scenario: String,
    /// Where.
    #[serde(rename = "where")]
    pub place: Where,
    /// How long to hold what was allocated before it is given back, in seconds, so that it can be
    /// watched.
    pub hold_seconds: f64,
}

/// How to find out whether readings are right.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SelftestJob {
    /// Where; on GPUs in any case.
    #[serde(rename = "where")]
    pub place: Where,
    /// Whether each load lasts only as long as it takes to see it.
    pub quick: bool,
}

impl Default for BurnJob {
    fn default() -> Self {
        Self {
            place: Where::default(),
            seconds: 60.0,
            memory: 0.8,
            dtype: None,
        }
    }
}

tagged!(Job by "kind" {
    "bench" => Bench(rest),
    "seeds" => Tutorials(rest),
    "burn" => Burn(rest),
    "oom" => Oom(rest),
    "selftest" => Selftest(rest),
});

/// What any job may take, beyond the time that it asks for.
const USUAL_LIMIT: Duration = Duration::from_mins(10);
/// What a self-test takes of each GPU.
const SELFTEST_SECONDS: f64 = 90.0;
/// As many GPUs as a machine has.
const MOST_GPUS: f64 = 16.0;

impl Job {
    /// Reads a job as it is sent.
    ///
    /// # Errors
    /// Where it is no job.
    pub fn parse(json: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_str(str::from_utf8(json).map_err(serde_json::Error::custom)?)
    }

    /// Where it is to run.
    pub fn place(&self) -> &Where {
        match self {
            Self::Bench(BenchJob { place, .. })
            | Self::Tutorials(TutorialsJob { place, .. })
            | Self::Burn(BurnJob { place, .. })
            | Self::Oom(OomJob { place, .. })
            | Self::Selftest(SelftestJob { place, .. }) => place,
        }
    }

    /// What kind of run it is, and the name of that kind in its JSON.
    pub fn kind(&self) -> (RunKind, &'static str) {
        match self {
            Self::Bench(_) => (RunKind::Bench, "bench"),
            Self::Tutorials(_) => (RunKind::Tutorials, "seeds"),
            Self::Burn(_) => (RunKind::Burn, "burn"),
            Self::Oom(_) => (RunKind::Oom, "oom"),
            Self::Selftest(_) => (RunKind::Selftest, "selftest"),
        }
    }

    /// What it is called until the process that does it says so.
    pub fn title(&self) -> String {
        let names = |names: &[String], all: &str| {
            if names.is_empty() {
                all.to_owned()
            } else {
                names.join(", ")
            }
        };
        match self {
            Self::Bench(bench) => names(&bench.ids, "all workloads"),
            Self::Tutorials(tutorials) => names(&tutorials.cases, "tutorials"),
            Self::Oom(oom) => oom.scenario.clone(),
            Self::Burn(_) | Self::Selftest(_) => self.kind().1.to_owned(),
        }
    }

    /// The command that asks for it, as lists of processes show the process that does it.
    pub fn command_line(&self) -> String {
        let (command, names) = match self {
            Self::Bench(bench) => ("bench", &*bench.ids),
            Self::Tutorials(tutorials) => ("tutorials", &*tutorials.cases),
            Self::Burn(_) => ("burn", &[][..]),
            Self::Oom(oom) => ("oom", std::slice::from_ref(&oom.scenario)),
            Self::Selftest(_) => ("selftest", &[][..]),
        };
        // A client of the server may send any text, and what a program is called must not make it
        // another one.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_name = |name: &&str| !name.is_empty() && name.bytes().all(is_plain);
        let names = names.iter().map(String::as_str).filter(is_name);
        ["gpumon", command]
            .into_iter()
            .chain(names)
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// How long it may take where nobody says: what it asks for by itself, and ten minutes.
    pub fn usual_limit(&self) -> Duration {
        USUAL_LIMIT + Duration::try_from_secs_f64(self.asked_seconds()).unwrap_or(Duration::MAX / 2)
    }

    /// The time in seconds that it asks for by itself, beside what it needs.
    pub fn asked_seconds(&self) -> f64 {
        match self {
            Self::Bench(_) | Self::Tutorials(_) => 0.0,
            Self::Selftest(test) if test.place.device.as_deref() == Some("all") => {
                MOST_GPUS * SELFTEST_SECONDS
            }
            Self::Selftest(_) => SELFTEST_SECONDS,
            Self::Burn(burn) => burn.seconds,
            Self::Oom(oom) => oom.hold_seconds,
        }
    }
}

impl BackendChoice {
    /// Whether it names this one.
    pub fn names(self, backend: Backend) -> bool {
        match self {
            Self::Auto | Self::Both => true,
            Self::Cuda => backend == Backend::Cuda,
            Self::Cpu => backend == Backend::Cpu,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_as_short_as_what_is_asked() {
        let job: Job =
            serde_json::from_str(r#"{"kind":"bench","ids":["copy"],"where":{"device":"1"}}"#)
                .unwrap();
        let place = Where {
            device: Some("1".to_owned()),
            ..Where::default()
        };
        assert_eq!(
            job,
            Job::Bench(BenchJob {
                ids: vec!["copy".to_owned()],
                place,
                ..BenchJob::default()
            })
        );
        let again: Job = serde_json::from_str(&serde_json::to_string(&job).unwrap()).unwrap();
        assert_eq!(again, job);
        let Job::Burn(burn) = serde_json::from_str(r#"{"kind":"burn"}"#).unwrap() else {
            panic!("a burn")
        };
        assert_eq!(
            (burn.seconds, burn.memory, &burn.place),
            (60.0, 0.8, &Where::default())
        );
        assert_eq!(
            (Job::Burn(burn).asked_seconds(), job.asked_seconds()),
            (60.0, 0.0)
        );
        assert_eq!(job.place().device.as_deref(), Some("1"));
    }

    #[test]
    fn a_job_has_a_title_a_kind_and_a_limit_from_the_start() {
        let job = |json: &str| serde_json::from_str::<Job>(json).unwrap();
        assert_eq!(
            job(r#"{"kind":"bench","ids":["copy","triad"]}"#).title(),
            "copy, triad"
        );
        assert_eq!(job(r#"{"kind":"bench"}"#).title(), "all workloads");
        let burn = job(r#"{"kind":"burn","seconds":90}"#);
        assert_eq!(
            (burn.kind().0, burn.usual_limit()),
            (RunKind::Burn, USUAL_LIMIT + Duration::from_secs(90))
        );
        assert_eq!(job(r#"{"kind":"bench"}"#).usual_limit(), USUAL_LIMIT);
        for json in [
            r#"{"kind":"seeds","rows":["c"]}"#,
            r#"{"kind":"oom"}"#,
            r#"{"kind":"selftest"}"#,
        ] {
            let job = job(json);
            assert_eq!(serde_json::to_value(&job).unwrap()["kind"], job.kind().1);
        }
    }

    #[test]
    fn a_job_is_called_by_the_command_that_asks_for_it() {
        for (json, command) in [
            (
                r#"{"kind":"bench","ids":["copy","matmul"]}"#,
                "gpumon bench copy matmul",
            ),
            (
                r#"{"kind":"bench","ids":["x/nvidia-smi","a\u0000b",""]}"#,
                "gpumon bench",
            ),
            (r#"{"kind":"seeds","rows":["k5"]}"#, "gpumon tutorials k5"),
            (r#"{"kind":"burn"}"#, "gpumon burn"),
            (
                r#"{"kind":"oom","scenario":"kv-cache"}"#,
                "gpumon oom kv-cache",
            ),
            (r#"{"kind":"selftest"}"#, "gpumon selftest"),
        ] {
            assert_eq!(
                serde_json::from_str::<Job>(json).unwrap().command_line(),
                command
            );
        }
    }

    #[test]
    fn what_is_not_a_job_is_refused() {
        assert!(serde_json::from_str::<Job>(r#"{"kind":"format_disk"}"#).is_err());
        assert!(serde_json::from_str::<Job>(r#"{"kind":"bench","id":"copy"}"#).is_err());
        assert!(serde_json::from_str::<Job>(r#"{"kind":"bench","size":{"apples":3}}"#).is_err());
    }
}
