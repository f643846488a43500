//! Reports of a worker process in the form for clients.
//!
//! Terminals can announce any text, so it is truncated and stripped of control characters.

use gpumon_probe::model::Absence;
use gpumon_workload::protocol::{
    Check, DeviceName, Found, Outcome, Report, Times, Topic, TutorialReport, Verdict,
};

use super::state::{RunDevice, RunItem, RunResult};

/// The maximum number of characters of a name.
pub(super) const NAME: usize = 80;
/// The maximum number of characters of a progress text.
pub(super) const BRIEF: usize = 200;
/// The maximum number of characters of a sentence or an error.
const SENTENCE: usize = 2000;

/// Truncates a text to `most` characters, and removes control characters.
pub(crate) fn clean(text: &str, most: usize) -> String {
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
    /// Converts a report to an item. Returns `None` for reports of progress.
    pub(super) fn from_report(report: Report) -> Option<Self> {
        Some(match report {
            Report::Result { outcome, .. } => Self::Result(Box::new(RunResult::from(*outcome))),
            Report::Tutorial { tutorial } => Self::from(*tutorial),
            Report::Check { check } => Self::from(*check),
            Report::Said { topic, text } => Self::Said {
                topic,
                text: clean(&text, SENTENCE),
            },
            Report::Failed { id, error, .. } => Self::failed(&id, &error),
            Report::Begun { .. }
            | Report::Phase { .. }
            | Report::Progress { .. }
            | Report::Ended { .. }
            | Report::Unknown => return None,
        })
    }

    fn failed(id: &str, error: &str) -> Self {
        Self::Failed {
            id: clean(id, NAME),
            error: clean(error, SENTENCE),
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
        let id = clean(&format!("{case} {variant}"), NAME);
        match found {
            Found::Measured { outcome } => Self::Result(Box::new(RunResult {
                id,
                ..RunResult::from(*outcome)
            })),
            Found::Failed { error, .. } => Self::failed(&id, &error),
            Found::Shown { text, .. } | Found::Skipped { reason: text } => Self::Said {
                topic: Topic::Step,
                text: clean(&format!("{id}: {text}"), SENTENCE),
            },
        }
    }
}

impl From<Check> for RunItem {
    fn from(
        Check {
            load,
            verdict,
            text,
            ..
        }: Check,
    ) -> Self {
        match verdict {
            Verdict::Mismatch => Self::failed(&load, &text),
            Verdict::Verified | Verdict::NotReported => Self::Said {
                topic: Topic::Proof,
                text: clean(&text, SENTENCE),
            },
        }
    }
}

impl From<Outcome> for RunResult {
    fn from(outcome: Outcome) -> Self {
        let median = |times: Option<Times>| times.map(|times| times.median_us);
        Self {
            id: clean(&outcome.id, NAME),
            device: clean(&outcome.device.name, NAME),
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
            // A result without any checked elements is not verified, even if the report states
            // otherwise.
            verified: outcome.verify.ok && outcome.verify.checked > 0,
            checked: outcome.verify.checked,
            wrong: outcome.verify.wrong,
            partial: outcome.partial,
        }
    }
}

impl RunDevice {
    /// Converts the name of a device. `index_of` returns the index of the GPU with a UUID.
    pub(super) fn new(device: &DeviceName, index_of: impl Fn(&str) -> Option<u32>) -> Self {
        Self {
            index: device.uuid.as_deref().and_then(index_of),
            name: clean(&device.name, NAME),
        }
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::Reading;
    use gpumon_workload::protocol::Line;

    use super::*;

    fn item(line: &str) -> Option<RunItem> {
        RunItem::from_report(Line::parse(line).unwrap().report)
    }

    /// A result in the format of the runner.
    const OUTCOME: &str = r#""id":"copy","backend":"cpu","device":{"name":"A CPU"},"dtype":"fp32","n":10,
        "extent":"elements","memory_bytes":80,"host_bytes":0,"moved_bytes":80,"operations":0,"device_time":null,
        "host_time":{"median_us":12.5,"low_us":12.0,"high_us":13.0,"p5_us":12.0,"p95_us":13.0,"min_us":12.0,"n":3},
        "stopped":"steady","partial":false,"rate":{"bytes_per_second":2e9},
        "roofline":{"limit":"memory","rated_per_second":{"absent":"unknown"},"share":{"absent":"unknown"}},
        "verify":{"ok":true,"checked":10,"wrong":0,"largest_error":0.0,"tolerance":1.0},
        "environment":{"from_ms":1,"to_ms":2,"gpumon":"0.1.0","cpu":"A CPU","threads":2}"#;

    #[test]
    fn sentences_failures_and_checks_are_items_and_the_rest_is_not() {
        let text = "Do it.".to_owned();
        let said = item(r#"{"report":"said","topic":"cure","text":"Do it."}"#);
        assert_eq!(
            said,
            Some(RunItem::Said {
                topic: Topic::Fix,
                text
            })
        );
        let failed =
            item(r#"{"report":"failed","id":"copy","backend":"cuda","error":"no room","code":1}"#);
        let (id, error) = ("copy".to_owned(), "no room".to_owned());
        assert_eq!(failed, Some(RunItem::Failed { id, error }));
        let text = || "utilization.gpu_percent of GPU 0".to_owned();
        let checked = |verdict: &str| {
            item(&format!(
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
        assert_eq!(item(r#"{"report":"ended","code":130}"#), None);
    }

    #[test]
    fn a_variant_of_a_tutorial_is_a_result_a_sentence_or_a_failure() {
        let tutorial = |rest: &str| {
            let line = format!(
                r#"{{"at_ms":1,"report":"seed","row":"c","title":"A title","teaches":"Much.","variant":"pinned",
                "backend":"cuda",{rest}}}"#
            );
            item(&line).unwrap()
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
    fn a_result_keeps_what_is_shown_and_says_what_is_absent() {
        let line = format!(r#"{{"report":"result",{OUTCOME},"load":null}}"#);
        let Some(RunItem::Result(result)) = item(&line) else {
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
        let Some(RunItem::Result(result)) = item(&unchecked) else {
            panic!("a result")
        };
        assert!(!result.verified, "nothing checked is not verified");
    }

    #[test]
    fn a_stranger_cannot_say_too_much() {
        let text = "\\u001b[2J".to_owned() + &"x".repeat(5000);
        let line = format!(r#"{{"report":"said","topic":"step","text":"{text}"}}"#);
        let Some(RunItem::Said { text, .. }) = item(&line) else {
            panic!("a sentence")
        };
        assert_eq!(text.chars().count(), SENTENCE);
        assert!(!text.contains('\u{1b}'));
    }
}
