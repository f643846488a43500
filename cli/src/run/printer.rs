//! What a command prints of reports: a line for people or the report itself for programs, and below them, on a terminal,
//! the progress line.

use std::{
    io::{self, Write},
    time::Duration,
};

use gpumon_workload::protocol::{Job, Line, Report};

use super::{BesideArgs, ProgressLine, View, follow};
use crate::{
    exit::{Failure, say},
    options::SourceArgs,
};

pub(crate) trait ForPeople {
    /// A result in words; `None` where the report is none.
    fn result(&mut self, report: &Report) -> Option<String>;

    /// What failed, as a line among the results; `None` where there is none among which it could be.
    fn failure(&mut self, id: &str, error: &str) -> Option<String> {
        let _ = (id, error);
        None
    }

    fn end(&self) -> String;
}

/// Has a job done and prints its results: in these words, or as they came.
pub(crate) fn print(
    source: &SourceArgs,
    job: &Job,
    limit: Option<Duration>,
    beside: Option<&BesideArgs>,
    text: impl ForPeople,
    for_programs: bool,
) -> Result<(), Failure> {
    let mut printer = Printer { text, for_programs, progress: ProgressLine::new() };
    let code = follow(source, job, limit, beside, &mut printer);
    if !for_programs {
        anstream::stdout().write_all(printer.text.end().as_bytes())?;
    }
    Failure::unless_success(code?)
}

struct Printer<T> {
    text: T,
    for_programs: bool,
    progress: ProgressLine,
}

impl<T> Printer<T> {
    fn line(&mut self, raw: &str, text: &str) -> io::Result<()> {
        self.progress.clear();
        let mut out = anstream::stdout();
        if self.for_programs {
            writeln!(out, "{raw}")?;
        } else {
            out.write_all(text.as_bytes())?;
        }
        out.flush()
    }

    /// All that is no result: sentences are printed, and the rest moves the progress line.
    fn beside(&mut self, report: &Report) {
        match report {
            Report::Said { text, .. } | Report::Failed { error: text, .. } => {
                self.progress.clear();
                say(text);
            }
            report => self.progress.on_report(report),
        }
    }
}

impl<T: ForPeople> View for Printer<T> {
    fn on_line(&mut self, raw: &str, line: Line) -> Result<(), Failure> {
        let text = match &line.report {
            Report::Failed { id, error, .. } if !self.for_programs => self.text.failure(id, error),
            report => self.text.result(report),
        };
        match text {
            Some(text) => self.line(raw, &text)?,
            None => self.beside(&line.report),
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
