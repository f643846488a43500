//! Events of GPUs and of the machine, each at one point in time, and the alerts that fire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Cell, Condition, Health, Process, Reading, Severity};
use crate::{flat, owner::clean_line, tagged};

/// An event with its time and its GPU.
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
pub struct Event {
    /// The time at which the event was detected.
    pub at_ms: u64,
    /// The GPU that the event is about, or `null` for an event of the machine.
    pub gpu: Option<GpuRef>,
    /// The kind of the event, with its values.
    #[serde(flatten)]
    #[ts(flatten)]
    pub what: EventKind,
}

/// A reference to a GPU by index and UUID.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct GpuRef {
    /// NVML's index of the GPU.
    pub index: u32,
    /// The GPU's UUID, if the driver reports it.
    pub uuid: Option<String>,
}

impl Event {
    /// Returns `true` if both values are the same event. Process names are not compared, because
    /// they depend on what each user may see.
    pub fn is_same_event(&self, other: &Self) -> bool {
        use EventKind::{ProcessEnded, ProcessStarted};
        let is_alike = match (&self.what, &other.what) {
            (ProcessStarted(one), ProcessStarted(other))
            | (ProcessEnded(one), ProcessEnded(other)) => one.pid == other.pid,
            (one, other) => one == other,
        };
        self.at_ms == other.at_ms && self.gpu == other.gpu && is_alike
    }
}

/// The kind of an event, distinguished by the tag `what`.
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum EventKind {
    /// The driver reports that the GPU is gone (`NVML_ERROR_GPU_IS_LOST`).
    GpuLost,
    /// A call to the driver for this GPU has not returned.
    GpuHung,
    /// The driver refuses to open the GPU, or fails every call for it.
    GpuFailed {
        /// The meaning of the driver's code, as a clause; empty if there is no explanation.
        #[serde(default)]
        meaning: String,
        /// The remedy, as a clause; empty if there is no known remedy.
        #[serde(default)]
        advice: String,
    },
    /// The GPU was added to the running machine.
    GpuAdded,
    /// The system has switched the GPU off to save power.
    GpuAsleep,
    /// The GPU responds again.
    GpuBack,
    /// The driver reported an error (NVML event, or a line in the kernel log).
    Xid(XidReport),
    /// New memory errors were counted since the previous check.
    EccErrors {
        /// Errors that the hardware corrected, without loss of data.
        corrected: u64,
        /// Errors that the hardware could not correct. Results computed with this memory are wrong,
        /// and programs that accessed it were terminated.
        uncorrected: u64,
    },
    /// A condition of the GPU began.
    ConditionBegan(Condition),
    /// A condition of the GPU ended. The event has the last values of the condition.
    ConditionEnded(Condition),
    /// A process started to use the GPU.
    ProcessStarted(ProcessRef),
    /// A process stopped using the GPU.
    ProcessEnded(ProcessRef),
    /// MIG was switched on or off, or its instances changed.
    MigChanged,
    /// The board's power source changed, for example from mains to battery
    /// (`nvmlEventTypePowerSourceChange`).
    PowerSourceChanged,
    /// The system clock was set, so times before and after this event cannot be compared.
    ClockChanged {
        /// The change of the clock in milliseconds; negative if the clock was set back.
        by_ms: i64,
    },
    /// A run of the workload runner started on the GPU.
    RunBegan(Run),
    /// A run reached its next step.
    RunStep(Run),
    /// A run ended on the GPU.
    RunEnded(Run),
    /// A person or a script marked this moment, for example the start of an epoch.
    Mark(Mark),
    /// A notebook's cell was executed; the time of the event is the end of the execution.
    Cell(Cell),
    /// An alert started to fire.
    AlertFiring(Alert),
    /// An alert stopped firing. The event has the last values of the alert.
    AlertResolved(Alert),
    /// Alerts do not reach a receiver, or a changed alert file has an error.
    AlertProblem {
        /// The problem and its remedy, as a sentence.
        message: String,
    },
}

/// A moment that a person or a script marked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Mark {
    /// The text of the mark.
    pub text: String,
    /// The login name of the user who set the mark. Omitted if the server cannot determine the
    /// user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub user: Option<String>,
}

/// Joins a meaning and its advice into one clause. The advice may be empty.
pub fn join_meaning_and_advice(meaning: &str, advice: &str) -> String {
    if advice.is_empty() {
        meaning.to_owned()
    } else {
        format!("{meaning}; {advice}")
    }
}

/// Converts a GPU's new health state to the event that reports the change.
impl From<&Health> for EventKind {
    fn from(health: &Health) -> Self {
        match health {
            Health::Ok => Self::GpuBack,
            Health::Hung { .. } => Self::GpuHung,
            Health::Lost { .. } => Self::GpuLost,
            Health::Failed {
                meaning, advice, ..
            } => Self::GpuFailed {
                meaning: meaning.clone(),
                advice: advice.clone(),
            },
            Health::Asleep { .. } => Self::GpuAsleep,
        }
    }
}

impl Mark {
    /// The maximum number of characters in a mark's text. The limit is low because the web page
    /// shows the text next to the pointer.
    pub const MAX_TEXT_CHARS: usize = 100;

    /// Parses the text of a mark: trims the text, and replaces invisible characters and terminal
    /// control characters.
    ///
    /// # Errors
    /// Returns an error that states the limit if the text is empty or too long.
    pub fn parse_text(text: &str) -> Result<String, String> {
        let text = text.trim();
        let length = text.chars().count();
        if !(1..=Self::MAX_TEXT_CHARS).contains(&length) {
            return Err(format!(
                "the text of a mark must have 1 to {} characters, but has {length}",
                Self::MAX_TEXT_CHARS
            ));
        }
        Ok(clean_line(text))
    }
}

/// A driver error and its meaning. NVIDIA's driver numbers its errors, which are called Xids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[ts(optional_fields)]
pub struct XidReport {
    /// The Xid's number, or gpumon's number for an error of another driver.
    pub code: u32,
    /// The name of the error, for drivers other than NVIDIA's. Omitted for Xids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The process that caused the error, if the driver reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The meaning of the error, as a sentence.
    pub meaning: String,
    /// The remedy, as a sentence.
    pub advice: String,
    /// The driver's message in the kernel log, if the log was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl XidReport {
    /// Returns a sentence with the error's number or name, the process and the meaning.
    pub fn headline(&self) -> String {
        let process = self.pid.map(|pid| format!(" (process {pid})"));
        let process = process.unwrap_or_default();
        match &self.name {
            Some(name) => format!("{name}{process}: {}", self.meaning),
            None => format!("Xid {}{process}: {}", self.code, self.meaning),
        }
    }

    /// Returns the headline followed by the remedy.
    pub fn text(&self) -> String {
        format!("{} {}", self.headline(), self.advice)
    }
}

/// A reference to a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct ProcessRef {
    /// The PID of the process.
    pub pid: u32,
    /// The script that an interpreter runs, such as `train.py`, otherwise the program's name.
    pub name: Reading<String>,
    /// The program's name, if `name` is a script's name. Omitted otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub program: Option<String>,
    /// The login name of the process's effective user, or the numeric user ID if there is no name.
    pub user: Reading<String>,
    /// The start time of the process.
    pub started_ms: Reading<u64>,
}

impl From<&Process> for ProcessRef {
    fn from(process: &Process) -> Self {
        Self {
            pid: process.pid,
            name: process.name.clone(),
            program: process.program.clone(),
            user: process.user.clone(),
            started_ms: process.started_ms.clone(),
        }
    }
}

/// A run of the workload runner, as shown in events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Run {
    /// The ID of the run, which is the same in all events of the run.
    pub run: String,
    /// The kind of work in the run.
    pub kind: RunKind,
    /// A short title, such as `copy, triad`.
    pub title: String,
    /// The current step, such as `copy`. Omitted before the first step and at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub step: Option<String>,
    /// The status of the run.
    pub status: RunStatus,
}

/// The kinds of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// A benchmark, which measures workloads and verifies their results.
    Bench,
    /// The tutorial benchmarks, which run small programs in several variants.
    #[serde(rename = "seeds")]
    Tutorials,
    /// A stress test that checks every result.
    Burn,
    /// A demonstration of an out-of-memory situation.
    Oom,
    /// A self-test, which compares readings with known loads.
    Selftest,
    /// A run in a terminal that did not report its kind.
    Other,
}

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// The run is still in progress.
    Running,
    /// The run ended, and every result was correct.
    Done,
    /// A result was wrong, or the run failed or was refused.
    Failed,
    /// A user stopped the run.
    Canceled,
    /// The program that runs the work stopped reporting before the end.
    Lost,
}

flat! { Event { at_ms, gpu, what: rest } }

tagged!(EventKind by "what" {
    "gpu_lost" => GpuLost,
    "gpu_hung" => GpuHung,
    "gpu_failed" => GpuFailed { meaning: default, advice: default },
    "gpu_added" => GpuAdded,
    "gpu_asleep" => GpuAsleep,
    "gpu_back" => GpuBack,
    "xid" => Xid(rest),
    "ecc_errors" => EccErrors { corrected, uncorrected },
    "condition_began" => ConditionBegan(rest),
    "condition_ended" => ConditionEnded(rest),
    "process_started" => ProcessStarted(rest),
    "process_ended" => ProcessEnded(rest),
    "mig_changed" => MigChanged,
    "power_source_changed" => PowerSourceChanged,
    "clock_changed" => ClockChanged { by_ms },
    "run_began" => RunBegan(rest),
    "run_step" => RunStep(rest),
    "run_ended" => RunEnded(rest),
    "mark" => Mark(rest),
    "cell" => Cell(rest),
    "alert_firing" => AlertFiring(rest),
    "alert_resolved" => AlertResolved(rest),
    "alert_problem" => AlertProblem { message },
});

/// An alert: a rule of the alert file that matches a GPU or the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Alert {
    /// The name of the alert's rule.
    pub rule: String,
    /// The severity that the rule specifies.
    pub severity: Severity,
    /// The time at which the alert started to fire, after the rule had matched for its minimum
    /// duration.
    pub since_ms: u64,
    /// The condition of the rule and the observed value, as a sentence.
    pub text: String,
    /// Whether the rule is silenced now. A silenced alert is listed, but nobody is notified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub silenced: bool,
    /// Whether the text can contain names of processes and notebooks. Users who may not see these
    /// names get another text. Omitted if `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub names_processes: bool,
}

/// An alert that fires now, with its GPU.
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
pub struct FiringAlert {
    /// The GPU, or `null` for an alert about the machine.
    pub gpu: Option<GpuRef>,
    /// The alert that fires.
    #[serde(flatten)]
    #[ts(flatten)]
    pub alert: Alert,
}

flat! { FiringAlert { gpu, alert: rest } }
