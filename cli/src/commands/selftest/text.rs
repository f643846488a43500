//! Readings beside what was made, as lines for people.

use gpumon_probe::untrusted::escaped;
use gpumon_workload::protocol::{Check, DeviceName, Report, Verdict};

use crate::{
    describe,
    run::ForPeople,
    terminal::{
        columns::{Column, Columns, terminal_columns},
        style::{ALARM, DIM, STRONG, WELL, paint},
        units::ABSENT,
    },
};

/// Where a load's readings begin, below what it does.
const INDENT: usize = 2;
const COLUMNS: [Column; 5] = [
    Column::align_left("reading", 0).at_least(39),
    Column::align_points("expected", 4, 3, 0),
    Column::align_points("reported", 4, 3, 0),
    Column::align_left("unit", 0).at_least(4),
    Column::align_left("result", 0).at_least(12),
];

#[derive(Debug)]
pub(super) struct Text {
    columns: Columns,
    devices: Vec<DeviceName>,
    /// The load of the last line.
    load: Option<String>,
    verified: usize,
    mismatches: usize,
    not_reported: usize,
}

impl Text {
    pub(super) fn new() -> Self {
        Self::with_room(terminal_columns())
    }

    fn with_room(terminal: Option<usize>) -> Self {
        let columns = Columns::with_headings(&COLUMNS, terminal);
        Self {
            columns,
            devices: Vec::new(),
            load: None,
            verified: 0,
            mismatches: 0,
            not_reported: 0,
        }
    }

    /// The next line, below what the load does where it is the first of that.
    fn lines(&mut self, check: &Check) -> String {
        let mut text = self.head();
        if self.load.as_deref() != Some(&check.load) {
            self.load = Some(check.load.to_string());
            text += &(paint(STRONG, &describe::capital(&check.does)) + "\n");
        }
        let (count, style) = match check.verdict {
            Verdict::Verified => (&mut self.verified, WELL),
            Verdict::Mismatch => (&mut self.mismatches, ALARM),
            Verdict::NotReported => (&mut self.not_reported, DIM),
        };
        *count += 1;
        let verdict = paint(style, check.verdict.words());
        let unit = check.unit.name();
        let figure = |reading| {
            check
                .unit
                .figure(reading)
                .unwrap_or_else(|| ABSENT.to_owned())
        };
        let reading = format!("{:INDENT$}GPU {} {}", "", check.gpu, check.reading);
        let cells = [
            reading,
            figure(&check.expected),
            figure(&check.reported),
            unit.to_owned(),
            verdict,
        ];
        text += &(self.columns.line(&cells) + "\n");
        if check.verdict == Verdict::Mismatch {
            let why = format!(
                "expected {} to {} {unit}: {}",
                figure(&check.least),
                figure(&check.most),
                check.how
            );
            text += &self.columns.format_remark(2 * INDENT, DIM, &why);
        }
        text
    }

    fn all(&self) -> usize {
        self.verified + self.mismatches + self.not_reported
    }

    /// The GPUs and the headings, above the first line.
    fn head(&mut self) -> String {
        if self.all() > 0 {
            return String::new();
        }
        let devices = self
            .devices
            .iter()
            .map(describe::device)
            .collect::<Vec<_>>()
            .join(", ");
        devices + "\n" + &self.columns.headings()
    }
}

impl ForPeople for Text {
    fn result(&mut self, report: &Report) -> Option<String> {
        match report {
            Report::Check { check } => return Some(self.lines(check)),
            Report::Failed { id, error, .. } if self.all() > 0 => {
                let error = escaped(&format!("{id}: failed: {error}"));
                return Some(self.columns.format_remark(2 * INDENT, ALARM, &error));
            }
            Report::Begun { devices, .. } => self.devices.clone_from(devices),
            _ => {}
        }
        None
    }

    fn end(&self) -> String {
        let all = self.all();
        if all == 0 {
            return String::new();
        }
        let mut parts = vec![format!("{} of {all} readings verified", self.verified)];
        let mismatches = || paint(ALARM, &format!("{} mismatch", self.mismatches));
        parts.extend((self.mismatches > 0).then(mismatches));
        parts
            .extend((self.not_reported > 0).then(|| format!("{} not reported", self.not_reported)));
        format!("\n{}\n", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Reading};
    use gpumon_workload::protocol::Unit;

    use super::*;
    use crate::terminal::style::plain;

    fn check(load: &'static str, verdict: Verdict) -> Check {
        Check {
            load: load.into(),
            does: "memory is read".into(),
            gpu: 0,
            reading: "activity.dram_bandwidth_percent".into(),
            unit: Unit::Percent,
            expected: Reading::Now(92.34),
            least: Reading::Now(87.34),
            most: Reading::Now(97.34),
            reported: match verdict {
                Verdict::Verified => Reading::Now(91.0),
                Verdict::Mismatch => Reading::Now(11.0),
                Verdict::NotReported => Reading::Absent(Absence::NotSupported),
            },
            verdict,
            how: "bytes were counted".to_owned(),
            text: String::new(),
        }
    }

    #[test]
    fn a_table_has_one_heading_and_what_is_a_mismatch_says_why() {
        let mut text = Text::with_room(Some(80));
        let failed: Report = serde_json::from_str(
            r#"{"report":"failed","id":"read","backend":"cuda","error":"no memory","code":1}"#,
        )
        .unwrap();
        assert_eq!(text.result(&failed), None, "there is no table yet");
        let first = plain(&text.lines(&check("read", Verdict::Verified)));
        let expected = [
            "",
            "reading                                 expected reported unit result",
            "Memory is read",
            "  GPU 0 activity.dram_bandwidth_percent   92.3     91.0   %    verified",
        ];
        assert_eq!(first.lines().collect::<Vec<_>>(), expected);
        let second = plain(&text.lines(&check("read", Verdict::Mismatch)));
        assert!(
            second.starts_with("  GPU 0 activity.dram")
                && second.contains("  11.0   %    mismatch\n"),
            "{second}"
        );
        assert!(
            second.ends_with("\n    expected 87.3 to 97.3 %: bytes were counted\n"),
            "{second}"
        );
        let third = plain(&text.lines(&check("other", Verdict::NotReported)));
        assert!(
            third.starts_with("Memory is read\n") && third.contains(" -     %    not reported"),
            "{third}"
        );
        let failed = text.result(&failed).map(|text| plain(&text));
        assert_eq!(failed.as_deref(), Some("    read: failed: no memory\n"));
        assert_eq!(
            plain(&text.end()),
            "\n1 of 3 readings verified, 1 mismatch, 1 not reported\n"
        );
        assert_eq!(Text::with_room(None).end(), "");
    }
}
