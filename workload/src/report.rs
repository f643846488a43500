//! What the process that works says while it does: one JSON object a line.

use serde::{Deserialize, Serialize};

use crate::{
    outcome::{DeviceName, Outcome},
    seeds::SeedReport,
    selftest::Check,
    workload::Backend,
};

/// What is said, told apart by `report`, with the time at which it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line<Load> {
    /// In ms since 1970.
    pub at_ms: u64,
    /// What.
    #[serde(flatten)]
    pub report: Report<Load>,
}

/// What is said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report<Load> {
    /// The job has begun. It comes first, and once.
    Begun {
        /// The job in a few words, as `copy, triad`.
        title: String,
        /// On what it works.
        devices: Vec<DeviceName>,
        /// How many steps it has.
        steps: usize,
    },
    /// A step has come to its next phase.
    Phase {
        /// Which step, counted from 0.
        step: usize,
        /// What is run: a workload, a row's variant, a scenario.
        id: String,
        /// Where.
        backend: Backend,
        /// What is done now.
        phase: Phase,
    },
    /// How far the step is: at most ten times a second.
    Progress {
        /// From 0 to 1.
        share: f64,
        /// What there is to say of it, as `612 TFLOP/s, 0 errors`.
        text: String,
    },
    /// A step's outcome.
    Result {
        /// What came of it.
        #[serde(flatten)]
        outcome: Box<Outcome>,
        /// What NVML read while it was timed; `null` where it read nothing.
        load: Option<Load>,
    },
    /// What a variant of a row has shown.
    Seed {
        /// It.
        #[serde(flatten)]
        seed: Box<SeedReport>,
    },
    /// A reading beside what a known load made.
    Check {
        /// It.
        #[serde(flatten)]
        check: Box<Check>,
    },
    /// A sentence for people: what happened, why, and what to do about it.
    Said {
        /// What kind of sentence it is.
        topic: Topic,
        /// It.
        text: String,
    },
    /// A step failed. The next one is run where that makes sense.
    Failed {
        /// What was run.
        id: String,
        /// Where.
        backend: Backend,
        /// Why, and what to do.
        error: String,
        /// The exit code that it comes to.
        code: u8,
    },
    /// The job is over. It comes last, and once.
    Ended {
        /// The exit code: 0 done and right, 1 wrong or failed, 2 bad argument, 3 no GPU, 5 refused, 130 cancelled.
        code: u8,
    },
}

/// What is done in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Memory is allocated and filled.
    Preparing,
    /// Run once, and the result checked.
    Checking,
    /// Run until clocks are up.
    WarmingUp,
    /// Run and timed.
    Measuring,
    /// The last result is checked.
    Verifying,
    /// Memory is held, so that it can be watched.
    Holding,
    /// Memory is given back.
    GivingBack,
}

/// What a sentence is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// What is done or was seen.
    Step,
    /// Why it is so.
    Cause,
    /// What to do about it.
    Cure,
    /// What one learns from it.
    Lesson,
    /// A figure that proves something, as free memory before and after.
    Proof,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_flat_object() {
        let report: Report<()> =
            Report::Phase { step: 0, id: "copy".to_owned(), backend: Backend::Cuda, phase: Phase::WarmingUp };
        let line = Line { at_ms: 5, report };
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(serde_json::from_str::<Line<()>>(&text).unwrap(), line);
        assert_eq!(text, r#"{"at_ms":5,"report":"phase","step":0,"id":"copy","backend":"cuda","phase":"warming_up"}"#);
    }
}
