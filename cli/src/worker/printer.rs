//! What a command prints of what a worker says: a line for people or the worker's own for programs, and below them, on a
//! terminal, how far it is.

use std::io::{self, Write};

use gpumon_workload::report::Report;

use super::Status;
use crate::{commands::work::Load, exit::say};

/// Prints what a worker says.
pub(crate) struct Printer {
    for_programs: bool,
    status: Status,
}

impl Printer {
    pub(crate) fn new(for_programs: bool) -> Self {
        Self { for_programs, status: Status::new() }
    }

    /// A line as it came, or what a person reads of it.
    pub(crate) fn line(&mut self, raw: &str, text: impl FnOnce() -> String) -> io::Result<()> {
        self.status.clear();
        let mut out = anstream::stdout();
        if self.for_programs {
            writeln!(out, "{raw}")?;
        } else {
            out.write_all(text().as_bytes())?;
        }
        out.flush()
    }

    /// All that is no result: sentences are said, and the rest moves the line on the terminal.
    pub(crate) fn beside(&mut self, report: &Report<Load>) {
        match report {
            Report::Said { text, .. } | Report::Failed { error: text, .. } => {
                self.status.clear();
                say(text);
            }
            report => self.status.hear(report),
        }
    }

    /// Some time has passed.
    pub(crate) fn tick(&mut self) {
        self.status.show();
    }

    /// Nothing more comes but what stands below everything, for people.
    pub(crate) fn end(&mut self) {
        self.status.clear();
    }

    /// What stands below everything.
    pub(crate) fn last(&mut self, text: impl FnOnce() -> String) -> io::Result<()> {
        if self.for_programs { Ok(()) } else { anstream::stdout().write_all(text().as_bytes()) }
    }
}
