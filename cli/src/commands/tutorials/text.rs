//! The report for people, which grows while variants end.

use gpumon_workload::protocol::{Backend, Found, Outcome, Report, Stopped, TutorialReport};

use super::super::bench::time;
use crate::{
    run::ForPeople,
    table::{
        style::{ALARM, DIM, NOTICE, WELL, paint},
        units::three_digits,
    },
};

/// What stands where there is no time.
const NONE: &str = "-";

#[derive(Default)]
pub(super) struct Text {
    /// The case that it is in, and what one learns from that.
    case: Option<(String, String)>,
}

impl Text {
    /// The next line, below the case's heading where it is its first, and what one learns from the case before.
    fn lines(&mut self, report: &TutorialReport) -> String {
        let line = line(report);
        if self.case.as_ref().is_some_and(|(case, _)| *case == report.case) {
            return format!("{line}\n");
        }
        let before = if self.case.is_some() { format!("{}\n", self.end()) } else { String::new() };
        self.case = Some((report.case.to_string(), report.teaches.to_string()));
        let heading = paint(DIM, &format!("{:38} {:>9} {:>9}", "", "device", "host"));
        format!("{before}{:3}{}\n{heading}\n{line}\n", report.case, report.title)
    }
}

impl ForPeople for Text {
    fn result(&mut self, report: &Report) -> Option<String> {
        if let Report::Tutorial { tutorial } = report { Some(self.lines(tutorial)) } else { None }
    }

    /// What one learns from the last case.
    fn end(&self) -> String {
        self.case.as_ref().map_or_else(String::new, |(_, teaches)| format!("   {teaches}\n"))
    }
}

fn line(report: &TutorialReport) -> String {
    let place = match report.backend {
        Backend::Cuda => "GPU",
        Backend::Cpu => "CPU",
    };
    let name = format!("   {place} {:31}", report.variant);
    match &report.found {
        Found::Measured { outcome } => format!("{name} {}", measured(report, outcome)),
        Found::Shown { ok: true, text } => format!("{name} {text}  {}", paint(WELL, "verified")),
        Found::Shown { ok: false, text } => format!("{name} {text}  {}", paint(ALARM, "MISMATCH")),
        Found::Skipped { reason } => format!("{name} {}", paint(DIM, &format!("skipped: {reason}"))),
        Found::Failed { error, .. } => format!("{name} {}", paint(ALARM, error)),
    }
}

/// Both times, the verification, and the comparison with a framework.
fn measured(report: &TutorialReport, outcome: &Outcome) -> String {
    let [device, host] = [&outcome.device_time, &outcome.host_time]
        .map(|times| times.as_ref().map_or_else(|| NONE.to_owned(), |times| time(times.median_us)));
    let verify = &outcome.verify;
    let result = match outcome.stopped {
        _ if verify.wrong > 0 => paint(ALARM, &format!("MISMATCH: {} of {} elements", verify.wrong, verify.checked)),
        Stopped::Interrupted => paint(NOTICE, "interrupted"),
        _ if !verify.ok => paint(ALARM, "not verified: no element was checked"),
        _ => paint(WELL, "verified"),
    };
    let beside = match (&report.framework, report.share_of_framework) {
        (Some(framework), Some(share)) => {
            let (ratio, comparison) = if share > 1.0 { (share, "slower") } else { (1.0 / share, "faster") };
            let text = format!("{}x {comparison} than {}", three_digits(ratio), framework.name);
            let measured = format!("({} on {}, measured {})", time(framework.us), framework.on, framework.measured);
            format!("  {} {}", if share > 1.0 { paint(NOTICE, &text) } else { text }, paint(DIM, &measured))
        }
        _ => String::new(),
    };
    format!("{device:>9} {host:>9}  {result}{beside}")
}

#[cfg(test)]
mod tests {
    use gpumon_workload::protocol::FrameworkTime;

    use super::*;
    use crate::commands::bench::sample_outcome as outcome;

    fn report(case: &'static str, found: Found) -> TutorialReport {
        TutorialReport {
            case: case.into(),
            title: "A title".into(),
            teaches: "It teaches.".into(),
            variant: "a variant".into(),
            backend: Backend::Cuda,
            found,
            framework: None,
            share_of_framework: None,
        }
    }

    #[test]
    fn a_time_is_compared_with_a_frameworks() {
        let framework =
            FrameworkTime { name: "CuPy".into(), us: 73.0, on: "an H200".into(), measured: "2026-11".into() };
        let beside = |share| {
            let mut report = report("a", Found::Measured { outcome: Box::new(outcome("GPU-a", 60.0)) });
            (report.framework, report.share_of_framework) = (Some(framework.clone()), Some(share));
            anstream::adapter::strip_str(&line(&report)).to_string()
        };
        let faster = beside(1.0 / 1.1);
        assert!(
            faster.ends_with("verified  1.10x faster than CuPy (73.0 us on an H200, measured 2026-11)"),
            "{faster}"
        );
        assert!(beside(2.0).contains("2.00x slower than CuPy"), "{}", beside(2.0));
    }

    #[test]
    fn a_row_begins_with_its_title_and_ends_with_what_it_teaches() {
        let mut text = Text::default();
        let shown = || Found::Shown { ok: true, text: "80 GB fit".to_owned() };
        let first = text.lines(&report("e", shown()));
        assert!(first.starts_with("e  A title\n") && first.contains("GPU a variant") && first.contains("80 GB fit"));
        assert_eq!(text.lines(&report("e", Found::Skipped { reason: "why".to_owned() })).lines().count(), 1);
        let next = text.lines(&report("k1", shown()));
        assert!(next.starts_with("   It teaches.\n\nk1 A title\n"), "{next}");
        assert_eq!(text.end(), "   It teaches.\n");
    }
}
