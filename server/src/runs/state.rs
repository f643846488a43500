//! The state of a run as clients receive it.

use gpumon_probe::model::{Reading, RunKind, RunStatus, now_ms};
use gpumon_workload::protocol::{Phase, Topic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The state of a run at a certain time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct RunState {
    /// The ID of the run.
    pub run: String,
    /// The kind of the run.
    pub kind: RunKind,
    /// A short title, such as `copy, triad`.
    pub title: String,
    /// Whether the run is in progress, or how it ended.
    pub status: RunStatus,
    /// Whether this server started the run and can cancel it. A run in a terminal can only be
    /// canceled there.
    pub own: bool,
    /// The time at which the run was started.
    pub started_ms: u64,
    /// The time at which the run ended; `null` while it is in progress.
    pub ended_ms: Option<u64>,
    /// The requested time in seconds for load or for holding memory; `null` if none was requested.
    pub seconds: Option<f64>,
    /// The devices that the run uses.
    pub devices: Vec<RunDevice>,
    /// The number of steps; 0 until the number is known.
    pub steps: u32,
    /// The current step; `null` before the first one.
    pub step: Option<RunStep>,
    /// The progress of the step from 0 to 1; `null` if unknown.
    pub share: Option<f64>,
    /// A text about the progress, such as `612 TFLOP/s, 0 errors`.
    pub text: String,
    /// The number of results, sentences and failures so far. `GET /api/v1/runs/{run}` returns all
    /// of them.
    pub items: u32,
    /// The newest item: a result, sentence or failure.
    pub newest: Option<RunItem>,
    /// The exit code of the worker process; `null` while the process runs, or if it ended without
    /// one.
    pub code: Option<u8>,
    /// The reason of the failure; `null` if there was no failure, or if an item contains the
    /// reason.
    pub error: Option<String>,
}

/// The response of `GET /api/v1/runs/{run}`: a run with all its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct RunDetails {
    /// The state of the run.
    #[serde(flatten)]
    #[ts(flatten)]
    pub state: RunState,
    /// The first few hundred results, sentences and failures, in order.
    pub all: Vec<RunItem>,
}

/// A device that a run uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct RunDevice {
    /// The NVML index of the GPU; `null` for a CPU, and for a GPU that the collector does not read.
    pub index: Option<u32>,
    /// The name of the device, such as `NVIDIA H200`.
    pub name: String,
}

/// The current step of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct RunStep {
    /// The number of the step, starting at 0.
    pub number: u32,
    /// The workload, variant of a case, or scenario that the step runs.
    pub id: String,
    /// The current phase of the step.
    pub phase: Phase,
    /// The time at which the phase began.
    pub since_ms: u64,
}

/// An item in a run's output. The key `item` contains its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(tag = "item", rename_all = "snake_case")]
pub enum RunItem {
    /// The result of a step.
    Result(Box<RunResult>),
    /// A sentence about the run for the user.
    Said {
        /// The topic of the sentence.
        topic: Topic,
        /// The text of the sentence.
        text: String,
    },
    /// A step that has failed.
    Failed {
        /// The workload, variant of a case, or scenario that failed.
        id: String,
        /// The reason and its remedy.
        error: String,
    },
}

/// The result of a single step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct RunResult {
    /// The workload, variant of a case, or scenario that the step ran.
    pub id: String,
    /// The name of the device, such as `NVIDIA H200`.
    pub device: String,
    /// The number type, such as `fp32`; empty if there is none.
    pub dtype: String,
    /// The median time in us, measured by the device's clock; absent on the CPU, and if nothing was
    /// timed.
    pub device_us: Reading<f64>,
    /// The median time in us, measured by the host's clock from the first call until all work was
    /// done.
    pub host_us: Reading<f64>,
    /// The number of bytes moved per second; absent if the workload does not measure bytes.
    pub bytes_per_second: Reading<f64>,
    /// The number of operations per second; absent if the workload does not measure operations.
    pub operations_per_second: Reading<f64>,
    /// The highest possible rate per second: in operations if computation is the limit, otherwise
    /// in bytes.
    pub peak_per_second: Reading<f64>,
    /// The ratio of the achieved rate to the highest possible rate, from 0 to 1.
    pub share: Reading<f64>,
    /// The limiting resource, such as `memory`; empty if unknown.
    pub limit: String,
    /// Whether the whole result was checked and is correct.
    pub verified: bool,
    /// The number of compared elements.
    pub checked: u64,
    /// The number of compared elements that are wrong.
    pub wrong: u64,
    /// Whether the step was stopped before it was complete.
    pub partial: bool,
}

impl RunState {
    /// Returns the state of a new run, before its first report.
    pub(crate) fn new_running(run: String, kind: RunKind, title: String, own: bool) -> Self {
        Self {
            run,
            kind,
            title,
            status: RunStatus::Running,
            own,
            started_ms: now_ms(),
            ended_ms: None,
            seconds: None,
            devices: Vec::new(),
            steps: 0,
            step: None,
            share: None,
            text: String::new(),
            items: 0,
            newest: None,
            code: None,
            error: None,
        }
    }
}
