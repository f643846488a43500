//! The findings of the checks, and the printed report: findings, available readings, and missing
//! readings.

use std::collections::{BTreeMap, BTreeSet};

use gpumon_probe::model::Absence;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    snapshot::DriverAnswer,
    terminal::{
        line::{ALARM, DIM, HEALTHY, NOTICE, PLAIN, paint},
        text,
        units::format_count,
    },
};

/// The width of the report, in columns. It fits an 80-column terminal.
const REPORT_WIDTH: usize = 80;
/// The width of the column for the verdict, including the gap to the next column. The constant
/// below is the width of the column for the check.
const VERDICT_WIDTH: usize = 9;
const CHECK_WIDTH: usize = 14;

/// The complete report of `gpumon doctor`: the findings and the readings.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Whether the report has no warnings and no problems.
    pub(super) well: bool,
    checks: Vec<Finding>,
    readings: Readings,
}

impl Report {
    pub(super) fn new(checks: Vec<Finding>, readings: Readings) -> Self {
        let well = checks
            .iter()
            .all(|finding| finding.verdict < Verdict::Warning);
        Self {
            well,
            checks,
            readings,
        }
    }

    /// Returns the report with `replaced` applied to each finding's text and advice, which may
    /// contain names.
    pub(super) fn map_texts(mut self, mut replaced: impl FnMut(&str) -> String) -> Self {
        for finding in &mut self.checks {
            finding.text = replaced(&finding.text);
            finding.cure = finding.cure.as_deref().map(&mut replaced);
        }
        self
    }

    /// Returns the report as text with ANSI styles.
    pub(super) fn to_text(&self) -> String {
        let findings = self.checks.iter().flat_map(format_finding);
        let readings = format_readings(&self.readings);
        let lines: Vec<_> = findings
            .chain(readings)
            .chain([String::new(), self.summary()])
            .collect();
        lines.join("\n") + "\n"
    }

    fn summary(&self) -> String {
        let count = |verdict: Verdict| {
            let found = self
                .checks
                .iter()
                .filter(|finding| finding.verdict == verdict);
            let count = found.count() as u64;
            (count > 0).then(|| format_count(count, verdict.word()))
        };
        match [Verdict::Problem, Verdict::Warning].map(count) {
            [None, None] => paint(HEALTHY, "no problems found"),
            [None, Some(warnings)] => paint(NOTICE, &warnings),
            [Some(problems), warnings] => {
                let all: Vec<_> = [problems].into_iter().chain(warnings).collect();
                paint(ALARM, &all.join(", "))
            }
        }
    }
}

/// Returns the lines of a finding: verdict, check and text in columns, followed by the advice.
fn format_finding(finding: &Finding) -> Vec<String> {
    let style = match finding.verdict {
        Verdict::Ok => HEALTHY,
        Verdict::Note => PLAIN,
        Verdict::Warning => NOTICE,
        Verdict::Problem => ALARM,
    };
    let head = paint(style, &format!("{:VERDICT_WIDTH$}", finding.verdict.word()))
        + &format!("{:CHECK_WIDTH$}", finding.check);
    let mut lines = wrap_text_after_head(&head, &finding.text);
    if let Some(cure) = &finding.cure {
        lines.extend(wrap_text_after_head(
            &" ".repeat(VERDICT_WIDTH + CHECK_WIDTH),
            &format!("> {cure}"),
        ));
    }
    lines
}

fn format_readings(readings: &Readings) -> Vec<String> {
    let Readings { present, missing } = readings;
    if present.is_empty() && missing.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        String::new(),
        format!("Available readings: {}.", present.len()),
    ];
    for missing in missing {
        let gpus: Vec<_> = missing.gpus.iter().map(u32::to_string).collect();
        let head = format!("Missing on GPU {}: {}", gpus.join(", "), missing.reason);
        lines.push(paint(DIM, &head));
        let names = wrap_text(&missing.readings.join(", "), REPORT_WIDTH - 2);
        lines.extend(names.iter().map(|line| format!("  {line}")));
    }
    lines
}

/// Returns `text` wrapped in the right column, with `head` to the left of the first line.
fn wrap_text_after_head(head: &str, text: &str) -> Vec<String> {
    let indent = " ".repeat(VERDICT_WIDTH + CHECK_WIDTH);
    let heads = std::iter::once(head).chain(std::iter::repeat(&*indent));
    let lines = heads.zip(wrap_text(text, REPORT_WIDTH - VERDICT_WIDTH - CHECK_WIDTH));
    lines.map(|(head, line)| format!("{head}{line}")).collect()
}

/// Wraps `text` to `width` columns. Control characters are removed, because the terminal would
/// interpret them.
fn wrap_text(text: &str, width: usize) -> Vec<String> {
    let shown: String = text.chars().filter(|letter| !letter.is_control()).collect();
    text::wrap(&shown, width)
}

/// The available and missing readings of all healthy GPUs.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Readings {
    /// The paths of the readings that at least one GPU reports, such as `power.draw_watts`.
    pub(super) present: Vec<String>,
    /// Missing readings, grouped by reason and GPUs.
    pub(super) missing: Vec<MissingReadings>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct MissingReadings {
    pub(super) reason: String,
    /// The indices of the GPUs that lack these readings.
    pub(super) gpus: Vec<u32>,
    pub(super) readings: Vec<String>,
}

/// Keys for identity, time and state. Their values are not readings.
const STATE_KEYS: [&str; 5] = ["index", "uuid", "at_ms", "health", "conditions"];

impl Readings {
    pub(super) fn new(answer: &DriverAnswer) -> Self {
        let all = answer.healthy_gpus().map(|(sample, details)| {
            let mut found = Vec::new();
            for value in [json!(sample), json!(details)] {
                collect_readings(&value, String::new(), &mut found);
            }
            (sample.index, found)
        });
        group_readings(all.collect())
    }
}

/// A reading's path in the JSON, and the reason if the reading is absent.
type FoundReading = (String, Option<String>);

fn collect_readings(value: &Value, path: String, found: &mut Vec<FoundReading>) {
    match value {
        Value::Object(fields) if fields.contains_key("absent") => {
            // Converting the reason to `Absence` gives the same wording as in the rest of the
            // program.
            let reason = Absence::deserialize(value).map(|absence| absence.to_string());
            let reason = reason.unwrap_or_else(|_| fields["absent"].to_string());
            found.push((path, Some(reason)));
        }
        Value::Object(fields)
            if !(fields.contains_key("value") && fields.contains_key("at_ms")) =>
        {
            for (name, value) in fields {
                match path.as_str() {
                    "" if STATE_KEYS.contains(&name.as_str()) => {}
                    "" => collect_readings(value, name.clone(), found),
                    _ => collect_readings(value, format!("{path}.{name}"), found),
                }
            }
        }
        Value::Null if path.is_empty() => {}
        _ => found.push((path, None)),
    }
}

fn group_readings(all: Vec<(u32, Vec<FoundReading>)>) -> Readings {
    let mut present = BTreeSet::new();
    // The key is a reading's path and the reason for its absence; the value lists the GPUs.
    let mut absent: BTreeMap<(String, String), Vec<u32>> = BTreeMap::new();
    for (index, found) in all {
        for (path, reason) in found {
            match reason {
                None => drop(present.insert(path)),
                Some(reason) => absent.entry((path, reason)).or_default().push(index),
            }
        }
    }
    let mut missing: BTreeMap<(String, Vec<u32>), Vec<String>> = BTreeMap::new();
    for ((path, reason), gpus) in absent {
        missing.entry((reason, gpus)).or_default().push(path);
    }
    let in_group = |((reason, gpus), readings)| MissingReadings {
        reason,
        gpus,
        readings,
    };
    Readings {
        present: present.into_iter().collect(),
        missing: missing.into_iter().map(in_group).collect(),
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// The subject of the check, in one or two words.
    pub(super) check: String,
    pub(super) verdict: Verdict,
    /// The result of the check, as a sentence.
    #[serde(rename = "finding")]
    pub(super) text: String,
    pub(super) cure: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Ok,
    /// Everything works, but the user should know about something.
    Note,
    /// Something works worse than it should, or may soon stop working.
    Warning,
    /// Something does not work.
    Problem,
}

impl Verdict {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

impl Finding {
    pub(super) fn new(check: impl Into<String>, verdict: Verdict, text: impl Into<String>) -> Self {
        Self {
            check: check.into(),
            verdict,
            text: text.into(),
            cure: None,
        }
    }

    pub(super) fn new_ok(check: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(check, Verdict::Ok, text)
    }

    pub(super) fn new_note(check: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(check, Verdict::Note, text)
    }

    pub(super) fn new_warning(
        check: impl Into<String>,
        text: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        Self::new(check, Verdict::Warning, text).with_cure(cure)
    }

    pub(super) fn new_problem(
        check: impl Into<String>,
        text: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        Self::new(check, Verdict::Problem, text).with_cure(cure)
    }

    /// Returns this finding with advice for the user.
    pub(super) fn with_cure(self, cure: impl Into<String>) -> Self {
        Self {
            cure: Some(cure.into()),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use unicode_width::UnicodeWidthStr;

    use crate::terminal::{line::strip_styles, snapshot::assert_report_matches_snapshot};

    use super::*;

    #[test]
    fn report_lines_fit_width_and_show_verdicts() {
        let findings = vec![
            Finding::new_ok("driver", "580.1"),
            Finding::new_problem(
                "gpu 63",
                "word ".repeat(40) + &"x".repeat(200),
                "reboot \u{1b}[2J now",
            ),
        ];
        let missing = MissingReadings {
            reason: "GPU lost".to_owned(),
            gpus: vec![1, 2],
            readings: vec!["a.b".repeat(40)],
        };
        let report = Report::new(
            findings,
            Readings {
                present: vec!["x".to_owned()],
                missing: vec![missing],
            },
        );
        assert!(!report.well);
        let text = strip_styles(&report.to_text());
        assert_report_matches_snapshot("doctor", |_| report.to_text());
        assert!(
            text.lines().all(|line| line.width() <= REPORT_WIDTH),
            "{text}"
        );
        assert_eq!(text.matches('x').count(), 200, "nothing is lost: {text}");
    }

    #[test]
    fn report_with_only_notes_shows_no_problems() {
        let report = Report::new(
            vec![Finding::new_note("server", "none")],
            Readings::default(),
        );
        assert!(report.well && report.to_text().contains("no problems found"));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["checks"][0]["verdict"], "note");
        assert_eq!(json["checks"][0]["finding"], "none");
        assert!(json["checks"][0]["cure"].is_null());
    }

    fn collect_all_readings(value: &Value) -> Vec<FoundReading> {
        let mut found = Vec::new();
        collect_readings(value, String::new(), &mut found);
        found
    }

    #[test]
    fn readings_are_grouped_by_presence_and_absence_reason() {
        let value = json!({
            "index": 0, "uuid": null, "health": {"state": "ok"},
            "power": {"draw_watts": 5.0, "limit_watts": {"value": 7, "at_ms": 1}},
            "fan_percent": {"absent": "not_supported"},
            "processes": [{"name": {"absent": "unknown"}}],
            "modes": {
                "ecc": {"current": true, "pending": true},
                "mig": {"absent": "driver_error", "code": 999}
            },
        });
        let readings = group_readings(vec![
            (0, collect_all_readings(&value)),
            (1, collect_all_readings(&json!({"fan_percent": 30.0}))),
        ]);
        let expected = [
            "fan_percent",
            "modes.ecc.current",
            "modes.ecc.pending",
            "power.draw_watts",
            "power.limit_watts",
            "processes",
        ];
        assert_eq!(readings.present, expected);
        let missing: Vec<_> = readings
            .missing
            .iter()
            .map(|it| {
                (
                    it.reason.as_str(),
                    it.gpus.as_slice(),
                    it.readings.join(" "),
                )
            })
            .collect();
        assert_eq!(
            missing,
            [
                ("driver error 999", &[0][..], "modes.mig".to_owned()),
                (
                    "not supported by this board or driver",
                    &[0][..],
                    "fan_percent".to_owned()
                )
            ]
        );
    }
}
