//! What a command prints of reports: a line for people or the report itself for programs, and below them, on a terminal,
//! the progress line.

use std::io::{self, Write};

use gpumon_workload::protocol::Report;

use super::ProgressLine;
use crate::exit::say;

/// Prints reports.
pub(crate) struct Printer {
    for_programs: bool,
    progress: ProgressLine,
}

impl Printer {
    pub(crate) fn new(for_programs: bool) -> Self {
        Self { for_programs, progress: ProgressLine::new() }
    }

    /// A line as it came, or what a person reads of it.
    pub(crate) fn line(&mut self, raw: &str, text: impl FnOnce() -> String) -> io::Result<()> {
        self.progress.clear();
        let mut out = anstream::stdout();
        if self.for_programs {
            writeln!(out, "{raw}")?;
        } else {
            out.write_all(text().as_bytes())?;
        }
        out.flush()
    }

    /// All that is no result: sentences are printed, and the rest moves the progress line.
    pub(crate) fn beside(&mut self, report: &Report) {
        match report {
            Report::Said { text, .. } | Report::Failed { error: text, .. } => {
                self.progress.clear();
                say(text);
            }
            report => self.progress.on_report(report),
        }
    }

    /// Some time has passed.
    pub(crate) fn on_tick(&mut self) {
        self.progress.show();
    }

    /// Nothing more comes but what stands below everything, for people.
    pub(crate) fn end(&mut self) {
        self.progress.clear();
    }

    /// What stands below everything.
    pub(crate) fn last(&mut self, text: impl FnOnce() -> String) -> io::Result<()> {
        if self.for_programs { Ok(()) } else { anstream::stdout().write_all(text().as_bytes()) }
    }
}
