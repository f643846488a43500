//! The state of a run as clients receive it, and how the reports of the run's process change it.

use gpumon_probe::model::{Absence, Reading, Run, RunKind, RunStatus, now_ms};
use gpumon_workload::protocol::{
    DeviceName, Phase, ReadingCheck, Report, RunOutcome, Times, Topic, TutorialReport,
    VariantOutcome, Verdict,
};
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
    /// The reason for the failure; `null` if there was no failure, or if an item contains the
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

// Conversion of reports. Terminals can announce any text, so texts are truncated and stripped of
// control characters.

/// The maximum number of characters of a name.
const MAX_NAME_CHARS: usize = 80;
/// The maximum number of characters of a progress text.
const MAX_PROGRESS_CHARS: usize = 200;
/// The maximum number of characters in a sentence or an error message.
const MAX_SENTENCE_CHARS: usize = 2000;

/// Truncates a text to `most` characters, and replaces control characters by spaces.
pub(crate) fn clean_text(text: &str, most: usize) -> String {
    let printable = text.chars().map(|character| {
        if character.is_control() {
            ' '
        } else {
            character
        }
    });
    printable.take(most).collect()
}

impl RunItem {
    /// Converts a report to an item. Returns `None` for reports that are not items, such as
    /// progress.
    pub(super) fn from_report(report: Report) -> Option<Self> {
        Some(match report {
            Report::Result { outcome, .. } => Self::Result(Box::new(RunResult::from(*outcome))),
            Report::Tutorial { tutorial } => Self::from(*tutorial),
            Report::Check { check } => Self::from(*check),
            Report::Said { topic, text } => Self::Said {
                topic,
                text: clean_text(&text, MAX_SENTENCE_CHARS),
            },
            Report::Failed { id, error, .. } => Self::from_failure(&id, &error),
            Report::Begun { .. }
            | Report::Phase { .. }
            | Report::Progress { .. }
            | Report::Ended { .. }
            | Report::Unknown => return None,
        })
    }

    fn from_failure(id: &str, error: &str) -> Self {
        Self::Failed {
            id: clean_text(id, MAX_NAME_CHARS),
            error: clean_text(error, MAX_SENTENCE_CHARS),
        }
    }
}

impl From<TutorialReport> for RunItem {
    fn from(
        TutorialReport {
            case,
            variant,
            found,
            ..
        }: TutorialReport,
    ) -> Self {
        let id = clean_text(&format!("{case} {variant}"), MAX_NAME_CHARS);
        match found {
            VariantOutcome::Measured { outcome } => Self::Result(Box::new(RunResult {
                id,
                ..RunResult::from(*outcome)
            })),
            VariantOutcome::Failed { error, .. } => Self::from_failure(&id, &error),
            VariantOutcome::Shown { text, .. } | VariantOutcome::Skipped { reason: text } => {
                Self::Said {
                    topic: Topic::Step,
                    text: clean_text(&format!("{id}: {text}"), MAX_SENTENCE_CHARS),
                }
            }
        }
    }
}

impl From<ReadingCheck> for RunItem {
    fn from(
        ReadingCheck {
            load,
            verdict,
            text,
            ..
        }: ReadingCheck,
    ) -> Self {
        match verdict {
            Verdict::Mismatch => Self::from_failure(&load, &text),
            Verdict::Verified | Verdict::NotReported => Self::Said {
                topic: Topic::Proof,
                text: clean_text(&text, MAX_SENTENCE_CHARS),
            },
        }
    }
}

impl From<RunOutcome> for RunResult {
    fn from(outcome: RunOutcome) -> Self {
        let median = |times: Option<Times>| times.map(|times| times.median_us);
        Self {
            id: clean_text(&outcome.id, MAX_NAME_CHARS),
            device: clean_text(&outcome.device.name, MAX_NAME_CHARS),
            dtype: outcome.dtype.to_string(),
            device_us: median(outcome.device_time)
                .ok_or(Absence::NotSupported)
                .into(),
            host_us: median(outcome.host_time).ok_or(Absence::Unknown).into(),
            bytes_per_second: outcome
                .rate
                .bytes_per_second
                .ok_or(Absence::NotSupported)
                .into(),
            operations_per_second: outcome
                .rate
                .operations_per_second
                .ok_or(Absence::NotSupported)
                .into(),
            peak_per_second: outcome.roofline.rated_per_second,
            share: outcome.roofline.share,
            limit: outcome.roofline.limit.to_string(),
            // A result without any checked elements does not count as verified, whatever the report
            // states.
            verified: outcome.verify.ok && outcome.verify.checked > 0,
            checked: outcome.verify.checked,
            wrong: outcome.verify.wrong,
            partial: outcome.partial,
        }
    }
}

impl RunDevice {
    /// Creates a device from its reported name. `index_of` returns the index of the GPU with the
    /// given UUID.
    pub(super) fn new(device: &DeviceName, index_of: impl Fn(&str) -> Option<u32>) -> Self {
        Self {
            index: device.uuid.as_deref().and_then(index_of),
            name: clean_text(&device.name, MAX_NAME_CHARS),
        }
    }
}

/// The maximum number of devices of a run.
const MAX_DEVICES: usize = 64;
/// The maximum number of results and sentences that are kept for a run.
const MAX_ITEMS: usize = 512;
/// The maximum number of a run's steps that become events. No workload has more steps. The limit
/// ensures that steps do not displace all other events.
const MAX_STEP_EVENTS: usize = 64;

/// The record of one run, built from the reports of its process.
#[derive(Debug)]
pub(crate) struct RunRecord {
    pub(crate) state: RunState,
    items: Vec<RunItem>,
    step_events: usize,
}

/// The effect of a report on the event log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RecordChange {
    Began,
    Step,
    Other,
}

impl RunRecord {
    pub(crate) fn new(state: RunState) -> Self {
        Self {
            state,
            items: Vec::new(),
            step_events: 0,
        }
    }

    /// Processes a report. `index_of` returns the index of the GPU with a UUID.
    pub(crate) fn apply_report(
        &mut self,
        report: Report,
        index_of: impl Fn(&str) -> Option<u32>,
    ) -> RecordChange {
        let state = &mut self.state;
        match report {
            // A process can report the beginning of a run several times. Only the first report is
            // used.
            Report::Begun {
                title,
                devices,
                steps,
            } if state.steps == 0 => {
                let devices = devices.iter().take(MAX_DEVICES);
                state.devices = devices
                    .map(|device| RunDevice::new(device, &index_of))
                    .collect();
                state.title = clean_text(&title, MAX_PROGRESS_CHARS);
                state.steps = to_u32(steps).max(1);
                RecordChange::Began
            }
            Report::Phase {
                step, id, phase, ..
            } => {
                let (number, id) = (to_u32(step), clean_text(&id, MAX_NAME_CHARS));
                let before = state.step.replace(RunStep {
                    number,
                    id,
                    phase,
                    since_ms: now_ms(),
                });
                (state.share, state.text) = (None, String::new());
                let is_next = before.is_none_or(|before| before.number != number);
                let is_marked = is_next || matches!(phase, Phase::Holding | Phase::GivingBack);
                if !is_marked || state.steps == 0 || self.step_events == MAX_STEP_EVENTS {
                    return RecordChange::Other;
                }
                self.step_events += 1;
                RecordChange::Step
            }
            Report::Progress { share, text, .. } => {
                (state.share, state.text) = (
                    Some(share.clamp(0.0, 1.0)),
                    clean_text(&text, MAX_PROGRESS_CHARS),
                );
                RecordChange::Other
            }
            Report::Ended { code } => {
                state.code = Some(code);
                RecordChange::Other
            }
            report => {
                if let Some(item) =
                    RunItem::from_report(report).filter(|_| self.items.len() < MAX_ITEMS)
                {
                    self.items.push(item.clone());
                    state.items = to_u32(self.items.len());
                    state.newest = Some(item);
                }
                RecordChange::Other
            }
        }
    }

    pub(crate) fn end_run(&mut self, status: RunStatus, error: Option<String>) {
        let state = &mut self.state;
        state.status = status;
        state.error = error;
        state.ended_ms = Some(now_ms());
        (state.step, state.share, state.text) = (None, None, String::new());
    }

    /// Returns `true` if an item contains the reason for a failure.
    pub(crate) fn has_failure(&self) -> bool {
        self.items
            .iter()
            .any(|item| matches!(item, RunItem::Failed { .. }))
    }

    /// Returns `true` if the process has reported its devices. Events are only sent after that.
    pub(crate) fn has_reported_devices(&self) -> bool {
        self.state.steps > 0
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state.status == RunStatus::Running
    }

    pub(crate) fn to_event_run(&self) -> Run {
        let RunState {
            run,
            kind,
            title,
            status,
            step,
            ..
        } = &self.state;
        let word = |step: &RunStep| match step.phase {
            Phase::Holding => format!("{}, memory held", step.id),
            Phase::GivingBack => format!("{}, memory released", step.id),
            _ => step.id.clone(),
        };
        let step = step.as_ref().map(word);
        Run {
            run: run.clone(),
            kind: *kind,
            title: title.clone(),
            step,
            status: *status,
        }
    }

    pub(crate) fn details(&self) -> RunDetails {
        RunDetails {
            state: self.state.clone(),
            all: self.items.clone(),
        }
    }
}

fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::Reading;
    use gpumon_workload::protocol::ReportLine;

    use super::*;

    fn parse_item(line: &str) -> Option<RunItem> {
        RunItem::from_report(ReportLine::parse(line).unwrap().report)
    }

    /// A result in the format that worker processes report.
    const OUTCOME: &str = r#""id":"copy","backend":"cpu","device":{"name":"A CPU"},"dtype":"fp32","n":10,
        "extent":"elements","memory_bytes":80,"host_bytes":0,"moved_bytes":80,"operations":0,"device_time":null,
        "host_time":{"median_us":12.5,"low_us":12.0,"high_us":13.0,"p5_us":12.0,"p95_us":13.0,"min_us":12.0,"n":3},
        "stopped":"steady","partial":false,"rate":{"bytes_per_second":2e9},
        "roofline":{"limit":"memory","rated_per_second":{"absent":"unknown"},"share":{"absent":"unknown"}},
        "verify":{"ok":true,"checked":10,"wrong":0,"largest_error":0.0,"tolerance":1.0},
        "environment":{"from_ms":1,"to_ms":2,"gpumon":"0.1.0","cpu":"A CPU","threads":2}"#;

    #[test]
    fn worker_reports_become_run_items() {
        let text = "Do it.".to_owned();
        let said = parse_item(r#"{"report":"said","topic":"cure","text":"Do it."}"#);
        assert_eq!(
            said,
            Some(RunItem::Said {
                topic: Topic::Fix,
                text
            })
        );
        let failed = parse_item(
            r#"{"report":"failed","id":"copy","backend":"cuda","error":"no room","code":1}"#,
        );
        let (id, error) = ("copy".to_owned(), "no room".to_owned());
        assert_eq!(failed, Some(RunItem::Failed { id, error }));
        let text = || "utilization.gpu_percent of GPU 0".to_owned();
        let checked = |verdict: &str| {
            parse_item(&format!(
                r#"{{"report":"check","load":"half","does":"half is busy","gpu":0,"reading":"utilization.gpu_percent",
                "unit":"percent","expected":50,"least":48,"most":52,"reported":50,"verdict":"{verdict}","how":"counted",
                "text":"{}"}}"#,
                text()
            ))
        };
        assert_eq!(
            checked("verified"),
            Some(RunItem::Said {
                topic: Topic::Proof,
                text: text()
            })
        );
        assert_eq!(
            checked("mismatch"),
            Some(RunItem::Failed {
                id: "half".to_owned(),
                error: text()
            })
        );
        assert_eq!(parse_item(r#"{"report":"ended","code":130}"#), None);
    }

    #[test]
    fn tutorial_variant_becomes_one_run_item() {
        let tutorial = |rest: &str| {
            let line = format!(
                r#"{{"at_ms":1,"report":"seed","row":"c","title":"A title","teaches":"Much.","variant":"pinned",
                "backend":"cuda",{rest}}}"#
            );
            parse_item(&line).unwrap()
        };
        let measured = tutorial(&format!(r#""found":"measured","outcome":{{{OUTCOME}}}"#));
        let RunItem::Result(result) = measured else {
            panic!("a result")
        };
        assert_eq!((result.id.as_str(), result.verified), ("c pinned", true));
        let (id, error) = ("c pinned".to_owned(), "no room".to_owned());
        let failed = tutorial(r#""found":"failed","error":"no room","refused":false"#);
        assert_eq!(failed, RunItem::Failed { id, error });
        let said = RunItem::Said {
            topic: Topic::Step,
            text: "c pinned: there is no GPU".to_owned(),
        };
        assert_eq!(
            tutorial(r#""found":"skipped","reason":"there is no GPU""#),
            said
        );
    }

    #[test]
    fn run_result_keeps_values_and_absence_reasons() {
        let line = format!(r#"{{"report":"result",{OUTCOME},"load":null}}"#);
        let Some(RunItem::Result(result)) = parse_item(&line) else {
            panic!("a result")
        };
        assert_eq!(
            (result.device_us, result.host_us),
            (Reading::Absent(Absence::NotSupported), Reading::Now(12.5))
        );
        assert_eq!(
            (result.share, result.verified),
            (Reading::Absent(Absence::Unknown), true)
        );
        assert_eq!(result.peak_per_second, Reading::Absent(Absence::Unknown));
        assert_eq!(
            (result.dtype.as_str(), result.limit.as_str()),
            ("fp32", "memory")
        );
        let unchecked = line.replace(r#""checked":10"#, r#""checked":0"#);
        let Some(RunItem::Result(result)) = parse_item(&unchecked) else {
            panic!("a result")
        };
        assert!(!result.verified, "nothing checked is not verified");
    }

    #[test]
    fn long_reports_are_truncated() {
        let text = "\\u001b[2J".to_owned() + &"x".repeat(5000);
        let line = format!(r#"{{"report":"said","topic":"step","text":"{text}"}}"#);
        let Some(RunItem::Said { text, .. }) = parse_item(&line) else {
            panic!("a sentence")
        };
        assert_eq!(text.chars().count(), MAX_SENTENCE_CHARS);
        assert!(!text.contains('\u{1b}'));
    }
}
