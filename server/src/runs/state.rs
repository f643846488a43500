//! What is known of a run, as it travels.

use gpumon_probe::model::{Reading, RunKind, RunStatus, now_ms};
use gpumon_workload::protocol::{Phase, Topic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A run at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct RunState {
    /// Which.
    pub run: String,
    /// What kind of work it is.
    pub kind: RunKind,
    /// In a few words, as `copy, triad`.
    pub title: String,
    /// Whether it goes on, or how it ended.
    pub status: RunStatus,
    /// Whether it was started here and can be canceled here; a terminal's run ends in its terminal.
    pub own: bool,
    /// When it was started.
    pub started_ms: u64,
    /// When it ended; `null` while it goes on.
    pub ended_ms: Option<u64>,
    /// The time in seconds that was asked for: of load, or for memory to be held; `null` where none
    /// was.
    pub seconds: Option<f64>,
    /// On what it works.
    pub devices: Vec<RunDevice>,
    /// How many steps it has; 0 until that is known.
    pub steps: u32,
    /// The step that it is at; `null` before the first.
    pub step: Option<RunStep>,
    /// How far the step is, from 0 to 1; `null` where nobody knows.
    pub share: Option<f64>,
    /// What there is to say of it, as `612 TFLOP/s, 0 errors`.
    pub text: String,
    /// How many results, sentences and failures there are. `GET /api/v1/runs/{run}` has them all.
    pub items: u32,
    /// The newest of them.
    pub newest: Option<RunItem>,
    /// The exit code of the worker process; `null` while it runs, or if it has none.
    pub code: Option<u8>,
    /// Why it failed, in words for people; `null` where it did not, or where one of its items says
    /// so.
    pub error: Option<String>,
}

/// A run with all that has come of it: `GET /api/v1/runs/{run}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct RunDetails {
    /// How it is.
    #[serde(flatten)]
    #[ts(flatten)]
    pub state: RunState,
    /// Results, sentences and failures in the order in which they came; the first few hundred.
    pub all: Vec<RunItem>,
}

/// Something on which a run works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct RunDevice {
    /// NVML's index of the GPU; `null` for a CPU, and for a GPU that is not among those that are
    /// read.
    pub index: Option<u32>,
    /// As `NVIDIA H200`.
    pub name: String,
}

/// Where a run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct RunStep {
    /// Counted from 0.
    pub number: u32,
    /// What is run: a workload, a case's variant, a scenario.
    pub id: String,
    /// What is done now.
    pub phase: Phase,
    /// Since when.
    pub since_ms: u64,
}

/// Something that came of a run, told apart by `item`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(tag = "item", rename_all = "snake_case")]
pub enum RunItem {
    /// A step's result.
    Result(Box<RunResult>),
    /// A sentence for people.
    Said {
        /// What it is about.
        topic: Topic,
        /// It.
        text: String,
    },
    /// A step failed.
    Failed {
        /// What was run.
        id: String,
        /// Why, and what to do.
        error: String,
    },
}

/// What a step has shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct RunResult {
    /// What was run.
    pub id: String,
    /// On what, as `NVIDIA H200`.
    pub device: String,
    /// The type of numbers, as `fp32`; empty where there is none.
    pub dtype: String,
    /// The median by the device's clock, in us; absent on the CPU and where nothing was timed.
    pub device_us: Reading<f64>,
    /// The median by the host's clock, in us, from the first call until all was done.
    pub host_us: Reading<f64>,
    /// Bytes moved in a second; absent where it is not about bytes.
    pub bytes_per_second: Reading<f64>,
    /// Operations in a second; absent where it is not about them.
    pub operations_per_second: Reading<f64>,
    /// What is possible in a second: operations where the limit is computing, and bytes elsewhere.
    pub peak_per_second: Reading<f64>,
    /// The share of that which was reached, from 0 to 1.
    pub share: Reading<f64>,
    /// What it is as fast as, as `memory`; empty where nobody said.
    pub limit: String,
    /// Whether all of the result was checked and is right.
    pub verified: bool,
    /// Elements that were compared.
    pub checked: u64,
    /// Of those, how many are wrong.
    pub wrong: u64,
    /// Whether somebody stopped it before it had shown all.
    pub partial: bool,
}

impl RunState {
    /// Of a run of which nothing is known yet but what was asked for.
    pub(crate) fn beginning(run: String, kind: RunKind, title: String, own: bool) -> Self {
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
