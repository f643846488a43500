//! Reports of the worker process, which are one JSON object per line, and its exit codes.

use std::fmt;

use gpumon_probe::{flat, tagged};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{
    outcome::{DeviceName, FrameworkRun, RunOutcome, TutorialReport},
    readings::{Load, ReadingCheck},
    vocabulary::Backend,
};

/// The exit code if a result is wrong or could not be determined. [`Report::Ended`] contains the
/// same exit codes.
pub const EXIT_FAILED: u8 = 1;
/// The exit code if the job requests something impossible.
pub const EXIT_USAGE: u8 = 2;
/// The exit code if there is no GPU or no driver.
pub const EXIT_NO_GPU: u8 = 3;
/// The exit code if the job was refused to protect other users of the machine.
pub const EXIT_REFUSED: u8 = 5;
/// The exit code if the job was canceled. Shells use this code for SIGINT.
pub const EXIT_INTERRUPTED: u8 = 130;

const GIB: f64 = (1_u64 << 30) as f64;

/// A report and the time at which it was sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportLine {
    /// The time in milliseconds since 1970.
    pub at_ms: u64,
    #[serde(flatten)]
    pub report: Report,
}

/// The error for a line that is not a report.
#[derive(Debug, thiserror::Error)]
#[error("a line is not a report: {0}")]
pub struct InvalidReport(#[from] serde_json::Error);

/// A report. The JSON key `report` contains its kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    /// The job has begun. This is the first report, and is sent once.
    Begun {
        /// A short title of the job, such as `copy, triad`.
        title: String,
        /// The devices that the job uses.
        devices: Vec<DeviceName>,
        /// The number of the job's steps.
        steps: usize,
    },
    /// A step has reached its next phase.
    Phase {
        /// The number of the step, starting at 0.
        step: usize,
        /// The workload, variant of a case, or scenario that the step runs.
        id: String,
        backend: Backend,
        phase: Phase,
    },
    /// The progress of a step, sent at most ten times a second.
    Progress {
        /// The completed share of the step, from 0 to 1.
        share: f64,
        /// A short description of the progress, such as `612 TFLOP/s, 0 errors`.
        text: String,
        /// The use of the device's memory, if the step is about memory.
        #[serde(skip_serializing_if = "Option::is_none")]
        memory: Option<MemoryLevel>,
    },
    /// The outcome of running a workload.
    Result {
        #[serde(flatten)]
        outcome: Box<RunOutcome>,
        /// NVML's readings while the workload was timed; `null` if there are none.
        load: Option<Load>,
        /// The results of frameworks that ran the same operation.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        beside: Vec<FrameworkRun>,
    },
    /// The result of a variant of a tutorial benchmark.
    #[serde(rename = "seed")]
    Tutorial {
        #[serde(flatten)]
        tutorial: Box<TutorialReport>,
    },
    /// The comparison of a reading with a known load.
    Check {
        #[serde(flatten)]
        check: Box<ReadingCheck>,
    },
    /// A sentence for the user: an event, its cause, or a remedy.
    Said {
        /// The topic of the sentence.
        topic: Topic,
        text: String,
    },
    /// A step failed. If possible, the next step still runs.
    Failed {
        /// The workload, variant of a case, or scenario that failed.
        id: String,
        backend: Backend,
        /// The CUDA index of the GPU, if the step ran on one of several GPUs.
        #[serde(skip_serializing_if = "Option::is_none")]
        gpu: Option<u32>,
        /// The problem and its remedy.
        error: String,
        /// The exit code that corresponds to this error.
        code: u8,
    },
    /// The job has ended. This is the last report, and is sent once.
    Ended {
        /// The exit code, such as [`EXIT_FAILED`], or 0 if everything was completed and verified.
        code: u8,
    },
    /// A report of a kind that this version does not know. The worker process can be a newer
    /// version.
    Unknown,
}

flat! { ReportLine { at_ms: default, report: rest } }

tagged!(Report by "report" {
    "begun" => Begun { title, devices, steps },
    "phase" => Phase { step, id, backend, phase },
    "progress" => Progress { share, text: default, memory },
    "result" => Result { load, beside: default, outcome: rest },
    "seed" => Tutorial { tutorial: rest },
    "check" => Check { check: rest },
    "said" => Said { topic, text },
    "failed" => Failed { id, backend, gpu, error, code },
    "ended" => Ended { code },
    _ => Unknown,
});

/// The phase of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "RunPhase")]
#[schemars(rename = "RunPhase")]
pub enum Phase {
    /// Memory is allocated and filled.
    Preparing,
    /// The workload runs once, and its result is checked.
    Checking,
    /// The workload runs until the clocks have risen.
    WarmingUp,
    /// The workload runs while it is timed.
    Measuring,
    /// The last result is checked.
    Verifying,
    /// Memory is kept allocated, so that its use can be observed.
    Holding,
    /// The allocated memory is released again.
    GivingBack,
    /// A phase that this server does not know.
    #[serde(other)]
    Other,
}

/// The topic of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "RunTopic")]
#[schemars(rename = "RunTopic")]
pub enum Topic {
    /// An action or an observation.
    Step,
    /// The cause of an observation.
    Cause,
    /// The remedy for a problem.
    #[serde(rename = "cure")]
    Fix,
    /// The lesson of a demonstration.
    Lesson,
    /// A number that supports a statement, such as the free memory before and after.
    Proof,
    /// A topic that this server does not know.
    #[serde(other)]
    Other,
}

/// The use of a device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryLevel {
    /// The memory in use by all processes, in bytes.
    pub used_bytes: u64,
    /// The total memory, in bytes.
    pub total_bytes: u64,
    /// The memory that stays free for other processes, in bytes.
    pub reserve_bytes: u64,
}

impl ReportLine {
    /// Parses a line of the worker process.
    ///
    /// # Errors
    /// Returns an error if the line is not a report.
    pub fn parse(text: &str) -> Result<Self, InvalidReport> {
        Ok(serde_json::from_str(text)?)
    }
}

impl MemoryLevel {
    /// Creates a level from the free memory that the driver reports.
    pub fn new(free_bytes: u64, total_bytes: u64, reserve_bytes: u64) -> Self {
        Self {
            used_bytes: total_bytes.saturating_sub(free_bytes),
            total_bytes,
            reserve_bytes,
        }
    }

    /// Returns the share of the memory that is in use, from 0 to 1.
    pub fn used_share(&self) -> f64 {
        if self.total_bytes > 0 {
            (self.used_bytes as f64 / self.total_bytes as f64).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }
}

impl fmt::Display for MemoryLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [used, total, reserve] =
            [self.used_bytes, self.total_bytes, self.reserve_bytes].map(|bytes| bytes as f64 / GIB);
        write!(
            f,
            "{used:.2} of {total:.2} GiB used, {reserve:.2} GiB stay free for others"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_line_is_flat_json_object() {
        let report = Report::Phase {
            step: 0,
            id: "copy".to_owned(),
            backend: Backend::Cuda,
            phase: Phase::WarmingUp,
        };
        let line = ReportLine { at_ms: 5, report };
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(ReportLine::parse(&text).unwrap(), line);
        assert_eq!(
            text,
            r#"{"at_ms":5,"report":"phase","step":0,"id":"copy","backend":"cuda","phase":"warming_up"}"#
        );
    }

    #[test]
    fn every_report_survives_round_trip() {
        let device = r#"{"index":0,"name":"NVIDIA H200","uuid":"GPU-1"}"#;
        let times = r#"{"median_us":2.5,"low_us":2.4,"high_us":2.6,"p5_us":2.3,"p95_us":2.7,"min_us":2.2,"n":20}"#;
        let verify = r#"{"ok":true,"checked":5,"wrong":0,"largest_error":0.0,"tolerance":0.5}"#;
        let outcome = format!(
            r#""id":"copy","seed":"9e37","backend":"cuda","engine":"own","device":{device},"dtype":"fp32","n":8,"extent":"elements","memory_bytes":1,"host_bytes":2,"moved_bytes":3,"operations":4,"device_time":{times},"host_time":null,"stopped":"steady","partial":false,"rate":{{"bytes_per_second":4.2}},"roofline":{{"limit":"memory","rated_per_second":4.9,"share":{{"absent":"unknown"}}}},"verify":{verify},"environment":{{"from_ms":1,"to_ms":2,"gpumon":"0.1.0","cpu":"Xeon","threads":16}}"#
        );
        let tutorial =
            r#""row":"c","title":"Copies","teaches":"Fewer","variant":"own","backend":"cpu""#;
        for report in [
            &format!(r#""report":"begun","title":"copy","devices":[{device}],"steps":2"#),
            r#""report":"phase","step":0,"id":"copy","backend":"cuda","phase":"measuring""#,
            r#""report":"progress","share":0.5,"text":"half","memory":{"used_bytes":1,"total_bytes":2,"reserve_bytes":1}"#,
            &format!(
                r#""report":"result",{outcome},"load":{{"samples":3,"watts":{{"min":1.0,"mean":2.0,"max":3.0}},"held_down_by":{{"sw_power_cap":2}},"others":[{{"pid":7,"user":"ana"}}],"others_omitted":1}},"beside":[{{"name":"JAX","version":"0.8","host_time":{times},"verify":{verify}}}]"#
            ),
            &format!(
                r#""report":"seed",{tutorial},"found":"measured","outcome":{{{outcome}}},"share_of_framework":0.5"#
            ),
            &format!(r#""report":"seed",{tutorial},"found":"shown","ok":true,"text":"So it is""#),
            &format!(r#""report":"seed",{tutorial},"found":"skipped","reason":"no GPU""#),
            &format!(
                r#""report":"seed",{tutorial},"found":"failed","error":"no memory","refused":true"#
            ),
            r#""report":"check","load":"read","does":"Reads","gpu":0,"reading":"power.draw_watts","unit":"percent","expected":1.0,"least":{"absent":"unknown"},"most":2.0,"reported":1.5,"verdict":"verified","how":"so","text":"as it should be""#,
            r#""report":"said","topic":"cure","text":"Do so""#,
            r#""report":"failed","id":"copy","backend":"cuda","gpu":1,"error":"no memory","code":5"#,
            r#""report":"ended","code":0"#,
        ] {
            let line = format!(r#"{{"at_ms":5,{report}}}"#);
            assert_eq!(
                serde_json::to_string(&ReportLine::parse(&line).unwrap()).unwrap(),
                line
            );
        }
    }

    #[test]
    fn unknown_report_is_skipped_but_invalid_is_refused() {
        assert_eq!(
            ReportLine::parse(r#"{"report":"sung","song":1}"#)
                .unwrap()
                .report,
            Report::Unknown
        );
        let said = ReportLine::parse(r#"{"report":"said","topic":"rumor","text":"It is said."}"#)
            .unwrap()
            .report;
        assert_eq!(
            said,
            Report::Said {
                topic: Topic::Other,
                text: "It is said.".to_owned()
            }
        );
        for line in [
            "",
            "[]",
            "{}",
            "hello",
            r#"{"report":"ended","code":999}"#,
            r#"{"report":"result"}"#,
        ] {
            assert!(
                ReportLine::parse(line)
                    .unwrap_err()
                    .to_string()
                    .contains("not a report"),
                "{line}"
            );
        }
    }

    #[test]
    fn memory_level_shows_used_and_total() {
        let level = MemoryLevel::new(60 << 30, 140 << 30, (4 << 30) + (1 << 28));
        assert_eq!(
            level.to_string(),
            "80.00 of 140.00 GiB used, 4.25 GiB stay free for others"
        );
        assert!((level.used_share() - 80.0 / 140.0).abs() < 1e-9);
        assert!(MemoryLevel::new(0, 0, 0).used_share().abs() < 1e-9);
    }
}
