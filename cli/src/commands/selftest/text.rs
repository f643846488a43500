//! Readings beside what was made, as lines for people.

use gpumon_workload::protocol::{Check, DeviceName, Report, Verdict};

use crate::{
    describe,
    run::ForPeople,
    table::style::{ALARM, DIM, STRONG, WELL, paint},
};

#[derive(Debug, Default)]
pub(super) struct Text {
    devices: Vec<DeviceName>,
    /// The load of the last line.
    load: Option<String>,
    agree: usize,
    differ: usize,
    not_reported: usize,
}

impl Text {
    /// The next line, below a heading where it is the first of a load.
    fn lines(&mut self, check: &Check) -> String {
        let mut lines = Vec::new();
        if self.load.is_none() {
            lines.push(self.devices.iter().map(describe::device).collect::<Vec<_>>().join(", "));
        }
        if self.load.as_deref() != Some(&check.load) {
            self.load = Some(check.load.to_string());
            let does = paint(STRONG, &format!("{:58}", describe::capital(&check.does)));
            lines.push(format!("\n{does} {}", paint(DIM, &format!("{:>12} {:>12}", "made", "reported"))));
        }
        let (count, verdict) = match check.verdict {
            Verdict::Agrees => (&mut self.agree, paint(WELL, "agrees")),
            Verdict::Differs => (&mut self.differ, paint(ALARM, "DIFFERS")),
            Verdict::NotReported => (&mut self.not_reported, paint(DIM, "not reported")),
        };
        *count += 1;
        let reading = format!("GPU {} {}", check.gpu, check.reading);
        let [made, reported, least, most] =
            [&check.made, &check.reported, &check.least, &check.most].map(|figure| check.unit.words(figure));
        lines.push(format!("  {reading:56} {made:>12} {reported:>12}  {verdict}"));
        if check.verdict == Verdict::Differs {
            let why = format!("it should be {least} to {most}: {}", check.how);
            lines.push(format!("    {}", paint(DIM, &why)));
        }
        lines.join("\n") + "\n"
    }
}

impl ForPeople for Text {
    fn result(&mut self, report: &Report) -> Option<String> {
        match report {
            Report::Check { check } => return Some(self.lines(check)),
            Report::Begun { devices, .. } => self.devices.clone_from(devices),
            _ => {}
        }
        None
    }

    fn end(&self) -> String {
        if self.load.is_none() {
            return String::new();
        }
        let all = self.agree + self.differ + self.not_reported;
        let mut parts = vec![format!("{} of {all} readings agree", self.agree)];
        parts.extend((self.differ > 0).then(|| paint(ALARM, &format!("{} differ", self.differ))));
        parts.extend((self.not_reported > 0).then(|| format!("{} not reported", self.not_reported)));
        format!("\n{}\n", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Reading};
    use gpumon_workload::protocol::Unit;

    use super::*;

    fn check(load: &'static str, verdict: Verdict) -> Check {
        Check {
            load: load.into(),
            does: "memory is read".into(),
            gpu: 0,
            reading: "activity.dram_bandwidth_percent".into(),
            unit: Unit::Percent,
            made: Reading::Now(92.34),
            least: Reading::Now(87.34),
            most: Reading::Now(97.34),
            reported: match verdict {
                Verdict::Agrees => Reading::Now(91.0),
                Verdict::Differs => Reading::Now(11.0),
                Verdict::NotReported => Reading::Absent(Absence::NotSupported),
            },
            verdict,
            how: "bytes were counted".to_owned(),
            text: String::new(),
        }
    }

    #[test]
    fn a_load_has_one_heading_and_what_differs_says_why_it_is_wrong() {
        let mut text = Text::default();
        let plain = |text: String| anstream::adapter::strip_str(&text).to_string();
        let first = plain(text.lines(&check("read", Verdict::Agrees)));
        assert!(first.contains("\nMemory is read ") && first.ends_with("92.3 %       91.0 %  agrees\n"), "{first}");
        let second = plain(text.lines(&check("read", Verdict::Differs)));
        assert!(second.starts_with("  GPU 0 activity.dram") && second.contains("11.0 %  DIFFERS\n"), "{second}");
        assert!(second.ends_with("it should be 87.3 % to 97.3 %: bytes were counted\n"), "{second}");
        let third = plain(text.lines(&check("other", Verdict::NotReported)));
        assert!(third.starts_with('\n') && third.contains("-  not reported"), "{third}");
        assert_eq!(plain(text.end()), "\n1 of 3 readings agree, 1 differ, 1 not reported\n");
        assert_eq!(Text::default().end(), "");
    }
}
