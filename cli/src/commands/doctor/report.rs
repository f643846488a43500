//! The findings, printed.

use serde::Serialize;

use super::{
    finding::{Finding, Verdict},
    readings::{Missing, Readings},
};
use crate::{
    terminal::style::{ALARM, DIM, NOTICE, PLAIN, WELL, paint},
    terminal::text,
};

/// Every line fits the narrowest terminal.
const WIDTH: usize = 80;
/// The columns of verdict and check, with what stands between.
const VERDICT: usize = 9;
const CHECK: usize = 14;

/// Everything that `gpumon doctor` says.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Whether there is neither a warning nor a problem.
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

    /// The same with every sentence, which can have a name in it, replaced by what becomes of it.
    pub(super) fn map_texts(mut self, mut replaced: impl FnMut(&str) -> String) -> Self {
        for finding in &mut self.checks {
            finding.text = replaced(&finding.text);
            finding.cure = finding.cure.as_deref().map(&mut replaced);
        }
        self
    }

    /// The same for people, with ANSI styles.
    pub(super) fn text(&self) -> String {
        let findings = self.checks.iter().flat_map(finding_lines);
        let readings = readings_lines(&self.readings);
        let lines: Vec<_> = findings
            .chain(readings)
            .chain([String::new(), self.summary()])
            .collect();
        lines.join("\n") + "\n"
    }

    fn summary(&self) -> String {
        let count = |verdict, one: &str| {
            let count = self
                .checks
                .iter()
                .filter(|finding| finding.verdict == verdict)
                .count();
            let ending = if count == 1 { "" } else { "s" };
            (count > 0).then(|| format!("{count} {one}{ending}"))
        };
        match (
            count(Verdict::Problem, "problem"),
            count(Verdict::Warning, "warning"),
        ) {
            (None, None) => paint(WELL, "no problems found"),
            (Some(problems), None) => paint(ALARM, &problems),
            (None, Some(warnings)) => paint(NOTICE, &warnings),
            (Some(problems), Some(warnings)) => paint(ALARM, &format!("{problems}, {warnings}")),
        }
    }
}

/// Verdict, check and text side by side, the cure below.
fn finding_lines(finding: &Finding) -> Vec<String> {
    let style = match finding.verdict {
        Verdict::Ok => WELL,
        Verdict::Note => PLAIN,
        Verdict::Warning => NOTICE,
        Verdict::Problem => ALARM,
    };
    let head = paint(style, &format!("{:VERDICT$}", finding.verdict.word()))
        + &format!("{:CHECK$}", finding.check);
    let mut lines = beside(&head, &finding.text);
    if let Some(cure) = &finding.cure {
        lines.extend(beside(&" ".repeat(VERDICT + CHECK), &format!("> {cure}")));
    }
    lines
}

fn readings_lines(readings: &Readings) -> Vec<String> {
    if readings.present.is_empty() && readings.missing.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        String::new(),
        format!("{} readings are there.", readings.present.len()),
    ];
    for Missing {
        reason,
        gpus,
        readings,
    } in &readings.missing
    {
        let gpus = gpus
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        lines.push(paint(DIM, &format!("Missing on GPU {gpus}: {reason}")));
        lines.extend(
            wrap(&readings.join(", "), WIDTH - 2)
                .into_iter()
                .map(|line| format!("  {line}")),
        );
    }
    lines
}

/// The text in its column, with `head` before its first line.
fn beside(head: &str, text: &str) -> Vec<String> {
    let indent = " ".repeat(VERDICT + CHECK);
    let heads = std::iter::once(head).chain(std::iter::repeat(indent.as_str()));
    let lines = wrap(text, WIDTH - VERDICT - CHECK);
    heads
        .zip(lines)
        .map(|(head, line)| format!("{head}{line}"))
        .collect()
}

/// Lines of at most so many columns, without control characters, which a terminal would obey.
fn wrap(text: &str, width: usize) -> Vec<String> {
    text::wrap(
        &text
            .chars()
            .filter(|letter| !letter.is_control())
            .collect::<String>(),
        width,
    )
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;
    use crate::terminal::style::plain;

    #[test]
    fn every_line_fits_and_says_its_verdict() {
        let findings = vec![
            Finding::ok("driver", "580.1"),
            Finding::problem(
                "gpu 63",
                "word ".repeat(40) + &"x".repeat(200),
                "reboot \u{1b}[2J now",
            ),
        ];
        let missing = Missing {
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
        let text = plain(&report.text());
        assert!(
            text.starts_with("ok       driver        580.1\nproblem  gpu 63        word word"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.width() <= WIDTH), "{text}");
        assert_eq!(text.matches('x').count(), 200, "nothing is lost: {text}");
        assert!(
            text.contains("                       > reboot [2J now\n"),
            "{text}"
        );
        assert!(
            text.contains("Missing on GPU 1, 2: GPU lost") && text.ends_with("\n1 problem\n"),
            "{text}"
        );
    }

    #[test]
    fn notes_leave_it_well() {
        let report = Report::new(vec![Finding::note("server", "none")], Readings::default());
        assert!(report.well && report.text().contains("no problems found"));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["checks"][0]["verdict"], "note");
        assert_eq!(json["checks"][0]["finding"], "none");
        assert!(json["checks"][0]["cure"].is_null());
    }
}
