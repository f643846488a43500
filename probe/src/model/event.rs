//! Something that happened at a moment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Alert, Cell, Condition, Health, Reading};
use crate::{flat, owner::clean_line, tagged};

/// What happened, when, and to which GPU.
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
pub struct Event {
    /// When it was noticed.
    pub at_ms: u64,
    /// The GPU it happened to; `None` where it concerns the machine.
    pub gpu: Option<GpuRef>,
    /// What.
    #[serde(flatten)]
    #[ts(flatten)]
    pub what: EventKind,
}

/// A GPU by its two names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct GpuRef {
    /// NVML's index.
    pub index: u32,
    /// Its UUID, where the driver has told it.
    pub uuid: Option<String>,
}

impl Event {
    /// Whether both tell the same. Who may see more of a process has another name for it.
    pub fn is_same(&self, other: &Self) -> bool {
        use EventKind::{ProcessEnded, ProcessStarted};
        let is_alike = match (&self.what, &other.what) {
            (ProcessStarted(one), ProcessStarted(other))
            | (ProcessEnded(one), ProcessEnded(other)) => one.pid == other.pid,
            (one, other) => one == other,
        };
        self.at_ms == other.at_ms && self.gpu == other.gpu && is_alike
    }
}

/// What happened, told apart by `what`.
#[derive(Debug, Clone, PartialEq, Serialize, TS, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum EventKind {
    /// The driver says that the GPU is gone (`NVML_ERROR_GPU_IS_LOST`).
    GpuLost,
    /// A call to the driver for this GPU has not come back.
    GpuHung,
    /// The driver refuses to open the GPU, or fails every call about it.
    GpuFailed {
        /// The meaning of the driver's code, as a clause; empty if there is no explanation.
        #[serde(default)]
        meaning: String,
        /// What to do about it, as a clause; empty if there is no advice.
        #[serde(default)]
        advice: String,
    },
    /// The GPU was added to the running machine.
    GpuAdded,
    /// The system has switched the GPU off to save power.
    GpuAsleep,
    /// The GPU answers again.
    GpuBack,
    /// The driver reported an error (NVML event, or a line of the kernel's log).
    Xid(XidReport),
    /// Memory errors were counted since the last look.
    EccErrors {
        /// Corrected by the hardware, at no loss.
        corrected: u64,
        /// Not corrected: what was computed with them is wrong, and the program that met one has
        /// ended.
        uncorrected: u64,
    },
    /// Something began to be the matter.
    ConditionBegan(Condition),
    /// It is over. The condition is as it was last.
    ConditionEnded(Condition),
    /// A process appeared on the GPU.
    ProcessStarted(ProcessRef),
    /// A process left the GPU.
    ProcessEnded(ProcessRef),
    /// MIG was switched on or off, or its instances changed.
    MigChanged,
    /// The board's power supply changed, as between battery and mains
    /// (`nvmlEventTypePowerSourceChange`).
    PowerSourceChanged,
    /// The system's clock was set: times before and after this event are not by the same clock.
    ClockChanged {
        /// How far, in milliseconds; negative if it was set back.
        by_ms: i64,
    },
    /// The workload runner has begun to work here.
    RunBegan(Run),
    /// It has come to its next step.
    RunStep(Run),
    /// It is over.
    RunEnded(Run),
    /// Somebody marked this moment, as the beginning of an epoch.
    Mark(Mark),
    /// A notebook's cell was executed; the event is at its end.
    Cell(Cell),
    /// An alert began to fire.
    AlertFiring(Alert),
    /// It fires no more. The alert is as it was last.
    AlertResolved(Alert),
    /// Alerts do not reach a receiver, or a changed alert file has an error.
    AlertProblem {
        /// What is wrong, and what to do about it, in one sentence for people.
        message: String,
    },
}

/// A moment that a person or a script marked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Mark {
    /// What they say about it.
    pub text: String,
    /// Who that was, by the login name; left out where the server cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub user: Option<String>,
}

/// Returns a clause that says what is wrong and, if there is advice, what to do about it.
pub fn with_advice(meaning: &str, advice: &str) -> String {
    if advice.is_empty() {
        meaning.to_owned()
    } else {
        format!("{meaning}; {advice}")
    }
}

/// What is told where the health of a GPU has become this.
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
    /// The most characters of a text, which is drawn next to a pointer.
    pub const LONGEST_TEXT: usize = 100;

    /// Parses the text of a mark: trims it, and replaces invisible characters and those that
    /// control terminals.
    ///
    /// # Errors
    /// The text is empty or too long. The error gives the limit.
    pub fn parse_text(text: &str) -> Result<String, String> {
        let text = text.trim();
        let length = text.chars().count();
        if !(1..=Self::LONGEST_TEXT).contains(&length) {
            return Err(format!(
                "a mark's text has 1 to {} characters, not {length}",
                Self::LONGEST_TEXT
            ));
        }
        Ok(clean_line(text))
    }
}

/// An error of the driver, with its meaning. NVIDIA's driver numbers its errors: Xids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct XidReport {
    /// NVIDIA's number, or that of gpumon for an error of another driver.
    pub code: u32,
    /// The name of an error of another driver; left out for Xids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub name: Option<String>,
    /// The process it is about, where the driver says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub pid: Option<u32>,
    /// What it means, in a sentence.
    pub meaning: String,
    /// What to do about it, in a sentence.
    pub advice: String,
    /// The driver's own words, where they were read (the kernel's log).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub message: Option<String>,
}

impl XidReport {
    /// Returns the number or name, the process and the meaning in a sentence.
    pub fn headline(&self) -> String {
        let process = self.pid.map(|pid| format!(" (process {pid})"));
        let process = process.unwrap_or_default();
        match &self.name {
            Some(name) => format!("{name}{process}: {}", self.meaning),
            None => format!("Xid {}{process}: {}", self.code, self.meaning),
        }
    }

    /// Returns the same with what to do about it.
    pub fn text(&self) -> String {
        format!("{} {}", self.headline(), self.advice)
    }
}

/// A process by what tells it from others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct ProcessRef {
    /// Its PID.
    pub pid: u32,
    /// As [`Process::name`](super::Process::name).
    pub name: Reading<String>,
    /// As [`Process::program`](super::Process::program).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub program: Option<String>,
    /// As [`Process::user`](super::Process::user).
    pub user: Reading<String>,
    /// As [`Process::started_ms`](super::Process::started_ms).
    pub started_ms: Reading<u64>,
}

/// A run of the workload runner, as events tell of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Run {
    /// Which; the same in all of its events.
    pub run: String,
    /// What kind of work it is.
    pub kind: RunKind,
    /// In a few words, as `copy, triad`.
    pub title: String,
    /// What is run now, as `copy`; left out before the first step and at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub step: Option<String>,
    /// Whether it goes on, or how it ended.
    pub status: RunStatus,
}

/// Kinds of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// Workloads, measured and verified.
    Bench,
    /// Small programs in all their variants.
    #[serde(rename = "seeds")]
    Tutorials,
    /// Work without end, each result of which is checked.
    Burn,
    /// A demonstration of memory that runs out.
    Oom,
    /// Known loads, and what was reported of them.
    Selftest,
    /// Something that a terminal announced without saying what.
    Other,
}

/// How a run is, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It goes on.
    Running,
    /// It is done, and every result was right.
    Done,
    /// A result was wrong, or something failed or was refused.
    Failed,
    /// Somebody stopped it.
    Canceled,
    /// Whoever announced it fell silent before it ended.
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
