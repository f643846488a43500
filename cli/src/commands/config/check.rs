//! `gpumon config check`: what is wrong with settings files.

use std::{
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
};

use gpumon_alerts::rules::AlertRules;
use gpumon_probe::untrusted::escaped;
use serde::Serialize;

use crate::{
    config::{self, Refusal, TABLES, usual_path},
    exit::{Failure, say},
    grammar,
};

/// What is wrong, and where.
#[derive(Debug, Serialize)]
struct Mistake {
    /// `null` where it is not in one place of one file.
    file: Option<String>,
    line: Option<usize>,
    column: Option<usize>,
    message: String,
}

#[derive(Debug, Serialize)]
struct Report {
    /// Those that were read.
    files: Vec<PathBuf>,
    mistakes: Vec<Mistake>,
}

pub(super) fn run(named: Option<&Path>, json: bool) -> Result<(), Failure> {
    let report = report(named);
    if json {
        writeln!(
            io::stdout(),
            "{}",
            serde_json::to_string(&report).map_err(anyhow::Error::from)?
        )?;
    } else {
        told(&report)?;
    }
    Failure::unless_success(if report.mistakes.is_empty() { 0 } else { 2 })
}

fn report(named: Option<&Path>) -> Report {
    let (files, unreadable) = config::read(named);
    let mut mistakes: Vec<Mistake> = unreadable
        .into_iter()
        .map(|file| Mistake::new(&file))
        .collect();
    let mut alerts = Vec::new();
    let mut paths = Vec::new();
    for (path, parsed) in files {
        paths.push(path);
        mistakes.extend(parsed.mistakes.into_iter().map(|mistake| Mistake {
            file: Some(mistake.error.origin),
            line: Some(mistake.error.line),
            column: Some(mistake.error.column),
            message: mistake.error.message,
        }));
        let named = parsed
            .entries
            .iter()
            .filter(|entry| entry.key.full_name() == "serve.alerts");
        alerts.extend(
            named
                .flat_map(|entry| &entry.texts)
                .filter(|text| !text.is_empty())
                .map(PathBuf::from),
        );
    }
    // What cannot be said of one file alone.
    if mistakes.is_empty() {
        mistakes.extend(
            TABLES
                .into_iter()
                .flat_map(|table| contradictions(named, table)),
        );
    }
    let broken = alerts
        .iter()
        .filter_map(|file| AlertRules::read(file).err());
    mistakes.extend(broken.map(|error| Mistake::new(&error)));
    Report {
        files: paths.into_iter().chain(alerts).collect(),
        mistakes,
    }
}

impl Mistake {
    fn new(message: &impl ToString) -> Self {
        Self {
            file: None,
            line: None,
            column: None,
            message: message.to_string(),
        }
    }
}

fn contradictions(named: Option<&Path>, table: &str) -> Vec<Mistake> {
    let config = named
        .into_iter()
        .flat_map(|path| [OsString::from("--config"), path.into()]);
    let words: Vec<OsString> = ["gpumon".into(), table.into()]
        .into_iter()
        .chain(config)
        .collect();
    match config::resolve(&grammar::command(), &words) {
        Err(Refusal::Settings(mistakes)) => mistakes.iter().map(Mistake::new).collect(),
        // A variable that is wrong is no file's fault.
        Err(Refusal::Arguments(_)) | Ok(_) => Vec::new(),
    }
}

fn told(report: &Report) -> io::Result<()> {
    for Mistake {
        file,
        line,
        column,
        message,
    } in &report.mistakes
    {
        match (file, line, column) {
            (Some(file), Some(line), Some(column)) => {
                say(&format!("{file}:{line}:{column}: {message}"));
            }
            _ => say(message),
        }
    }
    let mut out = io::stdout().lock();
    if report.mistakes.is_empty() {
        for file in &report.files {
            writeln!(out, "{}: ok", escaped(&file.display().to_string()))?;
        }
        if report.files.is_empty() {
            let user =
                usual_path().map(|path| format!(" or {}", escaped(&path.display().to_string())));
            writeln!(
                out,
                "no settings file at /etc/gpumon/config.toml{}",
                user.unwrap_or_default()
            )?;
        }
    }
    Ok(())
}
