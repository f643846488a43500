//! What a command prints of reports: a line for people or the report itself for programs, and below them, on a terminal,
//! the progress line.

use std::{
    io::{self, Write},
    time::Duration,
};

use gpumon_workload::protocol::{Job, Line, Report};
use serde::Serialize;

use super::{BesideArgs, ProgressLine, View, follow};
use crate::{
    exit::{Failure, say},
    options::SourceArgs,
};

pub(crate) trait ForPeople {
    /// A result in words, as is what failed among others; `None` where the report is neither.
    fn result(&mut self, report: &Report) -> Option<String>;

    /// A result for programs, of a line as it came and as what it means.
    fn object(&mut self, raw: &str, line: &Line) -> Option<String> {
        matches!(line.report, Report::Check { .. } | Report::Tutorial { .. })
            .then(|| raw.to_owned())
    }

    fn end(&self) -> String;
}

/// Prints a list of what can run: one object a line for programs, these words for people.
pub(crate) fn print_list<T: Serialize>(
    entries: impl IntoIterator<Item = T>,
    for_programs: bool,
    words: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    for entry in entries {
        let line = if for_programs {
            serde_json::to_string(&entry).map_err(io::Error::from)?
        } else {
            words(&entry)
        };
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Has a job done and prints its results: in these words, or as they came.
pub(crate) fn print(
    source: &SourceArgs,
    job: &Job,
    limit: Option<Duration>,
    beside: Option<&BesideArgs>,
    text: &mut impl ForPeople,
    for_programs: bool,
) -> Result<(), Failure> {
    let mut printer = Printer {
        text,
        for_programs,
        progress: ProgressLine::new(),
    };
    let code = follow(source, job, limit, beside, &mut printer);
    if !for_programs {
        anstream::stdout().write_all(printer.text.end().as_bytes())?;
    }
    Failure::unless_success(code?)
}

struct Printer<'a, T> {
    text: &'a mut T,
    for_programs: bool,
    progress: ProgressLine,
}

impl<T: ForPeople> Printer<'_, T> {
    /// Whether the report was printed as a result.
    fn print(&mut self, raw: &str, line: &Line) -> io::Result<bool> {
        let text = if self.for_programs {
            self.text.object(raw, line).map(|object| object + "\n")
        } else {
            self.text.result(&line.report)
        };
        let Some(text) = text else { return Ok(false) };
        self.progress.clear();
        let mut out = anstream::stdout();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(true)
    }
}

impl<T: ForPeople> View for Printer<'_, T> {
    fn on_line(&mut self, raw: &str, line: Line) -> Result<(), Failure> {
        let is_printed = self.print(raw, &line)?;
        match &line.report {
            // Who reads objects gets the sentence, too.
            Report::Said { text, .. } | Report::Failed { error: text, .. }
                if !is_printed || self.for_programs =>
            {
                self.progress.clear();
                say(text);
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
