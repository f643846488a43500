//! Jobs for the runner. A job is one JSON object, which the terminal or the server sends to the
//! worker process.

use std::time::Duration;

use clap::ValueEnum;
use gpumon_probe::{model::RunKind, tagged};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::Error};

use super::vocabulary::{Backend, Dtype, Engine, Extent, Shape};

/// A job for the runner. The key `kind` contains its kind.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schemars(rename = "RunJob")]
pub enum Job {
    /// Workloads by name. Each is measured and verified.
    Bench(BenchJob),
    /// Tutorial benchmarks: small programs with all their variants.
    #[serde(rename = "seeds")]
    Tutorials(TutorialsJob),
    /// A stress test with matrix products. Every result is checked.
    Burn(BurnJob),
    /// A demonstration of running out of memory.
    Oom(OomJob),
    /// Known loads, whose effect is compared with gpumon's readings.
    Selftest(SelftestJob),
}

/// The backend and device of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Where {
    /// Whether to use a GPU, the CPU, or both.
    pub backend: BackendChoice,
    /// The GPU: its CUDA index, its UUID or a prefix of it, or `all` for every GPU if the job can
    /// use several. The job fails if the GPU does not exist. `null` means GPU 0, if there is one.
    pub device: Option<String>,
    /// Whether a GPU may be used on which other processes are computing.
    pub share: bool,
}

/// The backends that a job uses.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum BackendChoice {
    /// A GPU or, if there is none, the CPU.
    #[value(help = "GPU, or CPU if there is no GPU")]
    #[default]
    Auto,
    /// Only a GPU, never the CPU.
    #[value(help = "GPU")]
    Cuda,
    /// Only the CPU, never a GPU.
    #[value(help = "CPU, on all threads")]
    Cpu,
    /// First a GPU, and then the CPU.
    #[value(help = "GPU, then CPU")]
    Both,
}

/// A job that measures workloads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BenchJob {
    /// Names of the workloads. If empty, all workloads run.
    pub ids: Vec<String>,
    /// The backend and device of the job.
    #[serde(rename = "where")]
    pub place: Where,
    /// Number type. By default, each workload uses its usual type.
    pub dtype: Option<Dtype>,
    /// Size of the workloads. By default, each workload uses its usual size.
    pub size: Option<Amount>,
    /// Shape of the matrix product `matmul`, instead of a size.
    pub shape: Option<Shape>,
    /// Software that executes the workloads on a GPU.
    pub engine: Engine,
    /// Whether workloads that need two GPUs run on every ordered pair of GPUs. If no workload is
    /// named, all workloads that need two GPUs run.
    pub pairs: bool,
    /// Whether each measurement is kept short.
    pub quick: bool,
    /// Whether a GPU computes for three seconds before compute-bound workloads are timed. In this
    /// time, its clock settles at the frequency that the power limit allows.
    pub settle: bool,
    /// An exact list of workloads, which replaces names, type and size. If empty, the other keys
    /// select the workloads.
    pub works: Vec<BenchWork>,
}

/// One workload with its number type, its size and the GPU to run on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BenchWork {
    /// Name of the workload to run.
    pub id: String,
    /// Type of the workload's elements.
    pub dtype: Dtype,
    /// Size of the workload, with the same meaning as `n` in results.
    pub n: u64,
    /// UUID of the GPU to use.
    pub gpu: String,
}

/// Requested size of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Amount {
    /// Number of elements of each array, or of rows of each matrix.
    Count(u64),
    /// Number of bytes of each array or matrix.
    Bytes(u64),
    /// Number of repetitions, for workloads that repeat an operation.
    Times(u64),
}

impl Amount {
    /// Returns the amount that requests the size `n`, or `None` if the workload has a fixed size.
    pub fn from_size(n: u64, extent: Extent) -> Option<Self> {
        match extent {
            Extent::Fixed => None,
            Extent::Elements | Extent::Side => Some(Self::Count(n)),
            Extent::Times => Some(Self::Times(n)),
        }
    }

    /// Returns the size `n` that this amount requests of a workload with this extent. Returns
    /// `None` if this kind of amount does not apply to the extent.
    pub fn to_size(self, extent: Extent, dtype: Dtype) -> Option<u64> {
        match (self, extent) {
            (Self::Count(count), Extent::Elements | Extent::Side)
            | (Self::Times(count), Extent::Times) => Some(count),
            (Self::Bytes(bytes), Extent::Elements) => Some(bytes.div_ceil(dtype.bytes())),
            (Self::Bytes(bytes), Extent::Side) => Some(bytes.div_ceil(dtype.bytes()).isqrt()),
            _ => None,
        }
    }
}

/// A job that runs tutorial benchmarks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TutorialsJob {
    /// Names of cases, from `a` to `k5`. If empty, all cases run.
    #[serde(rename = "rows")]
    pub cases: Vec<String>,
    /// The backend and device of the job.
    #[serde(rename = "where")]
    pub place: Where,
    /// Whether each measurement is kept short.
    pub quick: bool,
}

/// A job that runs a stress test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BurnJob {
    /// The backend and device of the job.
    #[serde(rename = "where")]
    pub place: Where,
    /// Duration of the test in seconds.
    pub seconds: f64,
    /// Share of the free memory that is filled, from 0 to 1.
    pub memory: f64,
    /// Type of the multiplied numbers. The default is bf16 on GPUs with bf16 tensor cores, and fp32
    /// on others.
    pub dtype: Option<Dtype>,
}

/// A job that demonstrates running out of memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OomJob {
    /// Name of the scenario to run.
    pub scenario: String,
    /// The backend and device of the job.
    #[serde(rename = "where")]
    pub place: Where,
    /// Time in seconds for which the allocated memory is kept, so that it can be observed.
    pub hold_seconds: f64,
}

/// A job that checks gpumon's readings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SelftestJob {
    /// Device of the job; the backend `cpu` is refused.
    #[serde(rename = "where")]
    pub place: Where,
    /// Whether each load lasts only as long as needed to detect it.
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

/// The default time limit of a job. The duration that the job specifies is added to it.
const DEFAULT_TIME_LIMIT: Duration = Duration::from_mins(10);
/// The time in seconds that a self-test needs for each GPU.
const SELFTEST_SECONDS: f64 = 150.0;
/// The maximum number of GPUs that a machine is assumed to have.
const MAX_GPUS: f64 = 16.0;

impl Job {
    /// Parses a job from JSON.
    ///
    /// # Errors
    /// Returns an error if the JSON is not a job.
    pub fn parse(json: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_str(str::from_utf8(json).map_err(serde_json::Error::custom)?)
    }

    pub fn backend_and_device(&self) -> &Where {
        match self {
            Self::Bench(BenchJob { place, .. })
            | Self::Tutorials(TutorialsJob { place, .. })
            | Self::Burn(BurnJob { place, .. })
            | Self::Oom(OomJob { place, .. })
            | Self::Selftest(SelftestJob { place, .. }) => place,
        }
    }

    /// Returns the kind of the run, and the kind's name in JSON.
    pub fn kind_and_name(&self) -> (RunKind, &'static str) {
        match self {
            Self::Bench(_) => (RunKind::Bench, "bench"),
            Self::Tutorials(_) => (RunKind::Tutorials, "seeds"),
            Self::Burn(_) => (RunKind::Burn, "burn"),
            Self::Oom(_) => (RunKind::Oom, "oom"),
            Self::Selftest(_) => (RunKind::Selftest, "selftest"),
        }
    }

    /// Returns the title that the run has until the worker process reports one.
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
            Self::Burn(_) | Self::Selftest(_) => self.kind_and_name().1.to_owned(),
        }
    }

    /// Returns the command that would request this job. Process lists show it as the worker
    /// process's command.
    pub fn command_line(&self) -> String {
        let (command, names) = match self {
            Self::Bench(bench) => ("bench", &*bench.ids),
            Self::Tutorials(tutorials) => ("tutorials", &*tutorials.cases),
            Self::Burn(_) => ("burn", &[][..]),
            Self::Oom(oom) => ("oom", std::slice::from_ref(&oom.scenario)),
            Self::Selftest(_) => ("selftest", &[][..]),
        };
        // Clients of the server can send any text as a name. Such a text must not make the process
        // look like another program.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_name = |name: &&str| !name.is_empty() && name.bytes().all(is_plain);
        let names = names.iter().map(String::as_str).filter(is_name);
        ["gpumon", command]
            .into_iter()
            .chain(names)
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Returns the default time limit: ten minutes in addition to the duration that the job
    /// specifies.
    pub fn default_time_limit(&self) -> Duration {
        DEFAULT_TIME_LIMIT
            + Duration::try_from_secs_f64(self.requested_seconds()).unwrap_or(Duration::MAX / 2)
    }

    /// Returns the duration in seconds that the job specifies, or 0 if the job takes as long as it
    /// needs.
    pub fn requested_seconds(&self) -> f64 {
        match self {
            Self::Bench(_) | Self::Tutorials(_) => 0.0,
            Self::Selftest(test) if test.place.device.as_deref() == Some("all") => {
                MAX_GPUS * SELFTEST_SECONDS
            }
            Self::Selftest(_) => SELFTEST_SECONDS,
            Self::Burn(burn) => burn.seconds,
            Self::Oom(oom) => oom.hold_seconds,
        }
    }
}

impl BackendChoice {
    /// Returns `true` if this choice includes the backend.
    pub fn includes(self, backend: Backend) -> bool {
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
    fn job_without_options_uses_defaults() {
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
            (Job::Burn(burn).requested_seconds(), job.requested_seconds()),
            (60.0, 0.0)
        );
        assert_eq!(job.backend_and_device().device.as_deref(), Some("1"));
    }

    #[test]
    fn job_has_title_kind_and_limit() {
        let job = |json: &str| serde_json::from_str::<Job>(json).unwrap();
        assert_eq!(
            job(r#"{"kind":"bench","ids":["copy","triad"]}"#).title(),
            "copy, triad"
        );
        assert_eq!(job(r#"{"kind":"bench"}"#).title(), "all workloads");
        let burn = job(r#"{"kind":"burn","seconds":90}"#);
        assert_eq!(
            (burn.kind_and_name().0, burn.default_time_limit()),
            (RunKind::Burn, DEFAULT_TIME_LIMIT + Duration::from_secs(90))
        );
        assert_eq!(
            job(r#"{"kind":"bench"}"#).default_time_limit(),
            DEFAULT_TIME_LIMIT
        );
        for json in [
            r#"{"kind":"seeds","rows":["c"]}"#,
            r#"{"kind":"oom"}"#,
            r#"{"kind":"selftest"}"#,
        ] {
            let job = job(json);
            assert_eq!(
                serde_json::to_value(&job).unwrap()["kind"],
                job.kind_and_name().1
            );
        }
    }

    #[test]
    fn job_command_line_ignores_unsafe_names() {
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
    fn invalid_job_is_refused() {
        assert!(serde_json::from_str::<Job>(r#"{"kind":"format_disk"}"#).is_err());
        assert!(serde_json::from_str::<Job>(r#"{"kind":"bench","id":"copy"}"#).is_err());
        assert!(serde_json::from_str::<Job>(r#"{"kind":"bench","size":{"apples":3}}"#).is_err());
    }
}
