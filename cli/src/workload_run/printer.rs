//! Printing of a run's reports: text or the raw report, followed by a progress line on a terminal.

use std::time::{Duration, Instant};

use gpumon_probe::untrusted::escape_untrusted;
use gpumon_workload::protocol::{Job, Phase, Report, ReportLine};
use serde::Serialize;

use super::{FrameworkArgs, RunView, run_job};
use crate::{
    exit::{Failure, Result, print_message},
    options::SourceArgs,
    terminal::{
        output::{self, StatusLine},
        screen::Glyphs,
        text::cut,
        units::format_compact_duration,
    },
};

pub(crate) trait ReportFormatter {
    /// Returns the text for a result or a failed part of the run, or `None` for other reports.
    fn format_result(&mut self, report: &Report) -> Option<String>;

    /// Returns the JSON for a result. `raw` is the unparsed line.
    fn format_json(&mut self, raw: &str, line: &ReportLine) -> Option<String> {
        matches!(line.report, Report::Check { .. } | Report::Tutorial { .. })
            .then(|| raw.to_owned())
    }

    fn format_summary(&self) -> String;
}

/// Prints a list of available items, each as a JSON object or as text on its own line.
pub(crate) fn print_list<T: Serialize>(
    entries: impl IntoIterator<Item = T>,
    for_programs: bool,
    words: impl Fn(&T) -> String,
) -> Result {
    for entry in entries {
        if for_programs {
            output::print_json(&entry)?;
        } else {
            output::print(&(words(&entry) + "\n"))?;
        }
    }
    Ok(())
}

/// Runs a job and prints its results as text or as JSON.
pub(crate) fn run_and_print(
    source: &SourceArgs,
    job: &Job,
    limit: Option<Duration>,
    beside: Option<&FrameworkArgs>,
    text: &mut impl ReportFormatter,
    for_programs: bool,
) -> Result {
    let mut printer = Printer {
        text,
        for_programs,
        progress: ProgressLine::new(),
    };
    let code = run_job(source, job, limit, beside, &mut printer);
    if !for_programs {
        output::print(&printer.text.format_summary())?;
    }
    Failure::check_exit_code(code?)
}

struct Printer<'a, T> {
    text: &'a mut T,
    for_programs: bool,
    progress: ProgressLine,
}

impl<T: ReportFormatter> Printer<'_, T> {
    /// Prints the report if it contains a result. Returns whether it was printed.
    fn print_report(&mut self, raw: &str, line: &ReportLine) -> Result<bool> {
        let text = if self.for_programs {
            let object = self.text.format_json(raw, line);
            object.map(|object| object + "\n")
        } else {
            self.text.format_result(&line.report)
        };
        let Some(text) = text else { return Ok(false) };
        self.progress.clear();
        if self.for_programs {
            output::print_raw(&text)?;
        } else {
            output::print(&text)?;
        }
        Ok(true)
    }
}

impl<T: ReportFormatter> RunView for Printer<'_, T> {
    fn on_line(&mut self, raw: &str, line: ReportLine) -> Result {
        let is_printed = self.print_report(raw, &line)?;
        match &line.report {
            // With JSON output, these messages are printed on standard error in addition to their
            // JSON objects.
            Report::Said { text, .. } | Report::Failed { error: text, .. }
                if !is_printed || self.for_programs =>
            {
                self.progress.clear();
                print_message(text);
            }
            report => self.progress.on_report(report),
        }
        Ok(())
    }

    fn on_tick(&mut self) {
        self.progress.show();
    }

    fn end(&mut self) {
        self.progress.clear();
    }
}

const BAR_WIDTH: usize = 16;

/// The progress line on standard error. It is shown only if standard error is a terminal that can
/// rewrite a line.
pub(crate) struct ProgressLine {
    is_shown: bool,
    begun: Instant,
    steps: usize,
    step: usize,
    what: String,
    share: Option<f64>,
    text: String,
    shown: StatusLine,
}

impl ProgressLine {
    pub(crate) fn new() -> Self {
        Self {
            is_shown: StatusLine::can_be_shown(),
            begun: Instant::now(),
            steps: 0,
            step: 0,
            what: String::new(),
            share: None,
            text: String::new(),
            shown: StatusLine::default(),
        }
    }

    pub(crate) fn on_report(&mut self, report: &Report) {
        match report {
            Report::Begun { steps, .. } => self.steps = *steps,
            Report::Phase {
                step, id, phase, ..
            } => {
                (self.step, self.what) = (*step, format!("{id}: {}", describe_phase(*phase)));
                (self.share, self.text) = (None, String::new());
            }
            Report::Progress { share, text, .. } => {
                (self.share, self.text) = (Some(*share), text.clone());
            }
            _ => return,
        }
        self.show();
    }

    pub(crate) fn show(&mut self) {
        if self.is_shown && !self.what.is_empty() {
            let line = self.format_line(self.begun.elapsed().as_millis() as u64);
            self.shown.show(&cut(&line, StatusLine::columns()));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.shown.clear();
    }

    fn format_line(&self, elapsed_ms: u64) -> String {
        let mut parts = vec![format!("{:>5}", format_compact_duration(elapsed_ms))];
        if self.steps > 1 {
            parts.push(format!("{}/{}", self.step + 1, self.steps));
        }
        parts.extend(self.share.map(|share| {
            let (full, empty) = Glyphs::Ascii.draw_bar(share, BAR_WIDTH);
            format!("[{full}{empty}]")
        }));
        let text = if self.text.is_empty() {
            String::new()
        } else {
            format!(", {}", self.text)
        };
        parts.push(escape_untrusted(&format!("{}{text}", self.what)));
        parts.join("  ")
    }
}

fn describe_phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Preparing => "preparing",
        Phase::Checking => "verifying the first result",
        Phase::WarmingUp => "warming up",
        Phase::Measuring => "measuring",
        Phase::Verifying => "verifying the last result",
        Phase::Holding => "holding memory",
        Phase::GivingBack => "freeing memory",
        Phase::Other => "working",
    }
}

#[cfg(test)]
mod tests {
    use gpumon_workload::protocol::Backend;

    use super::*;

    #[test]
    fn progress_line_has_workload_progress_and_time() {
        let mut status = ProgressLine::new();
        status.is_shown = false;
        let mut line_after = |report: Report| {
            status.on_report(&report);
            status.format_line(65_000)
        };
        line_after(Report::Begun {
            title: "copy, add".to_owned(),
            devices: Vec::new(),
            steps: 2,
        });
        let id = || "add".to_owned();
        let phase = |phase| Report::Phase {
            step: 1,
            id: id(),
            backend: Backend::Cuda,
            phase,
        };
        assert_eq!(
            line_after(phase(Phase::Preparing)),
            "   1m  2/2  add: preparing"
        );
        line_after(phase(Phase::Measuring));
        let line = line_after(Report::Progress {
            share: 0.5,
            text: "1\u{1b}[2J errors".to_owned(),
            memory: None,
        });
        assert_eq!(
            line,
            "   1m  2/2  [########........]  add: measuring, 1\\u{1b}[2J errors"
        );
        assert_eq!(
            line_after(phase(Phase::Verifying)),
            "   1m  2/2  add: verifying the last result"
        );
    }
}
