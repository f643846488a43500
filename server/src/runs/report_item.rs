//! Conversion of a worker process's reports into the form that clients receive.
//!
//! Terminals can announce any text, so texts are truncated and stripped of control characters.

use gpumon_probe::model::Absence;
use gpumon_workload::protocol::{
    DeviceName, ReadingCheck, Report, RunOutcome, Times, Topic, TutorialReport, VariantOutcome,
    Verdict,
};

use super::state::{RunDevice, RunItem, RunResult};

/// The maximum number of characters of a name.
pub(super) const MAX_NAME_CHARS: usize = 80;
/// The maximum number of characters of a progress text.
pub(super) const MAX_PROGRESS_CHARS: usize = 200;
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
    fn output_reports_become_items() {
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
    fn tutorial_variant_becomes_one_item() {
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
    fn result_keeps_values_and_absences() {
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
