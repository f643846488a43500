//! Exit codes, and which failure gets which.

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
};

use clap::{
    CommandFactory,
    error::{ContextKind, ContextValue, ErrorKind},
};
use gpumon_probe::{untrusted::escaped, vendor::SourceError};
use gpumon_server::listen::ListenError;

use crate::{args::Args, suggest::nearest};

/// Why a command failed, and the exit code that says so to a script.
///
/// The codes are nvidia-smi's where it has one: 2 for a bad argument, 4 no permission, 6 no device, 9 driver not
/// loaded, 12 no library, 18 library and driver do not match; 1 for anything else.
#[derive(Debug)]
pub(crate) struct Failure {
    /// `None` where the command has told it already.
    error: Option<anyhow::Error>,
    code: u8,
}

/// Tells the user, in one line: part of it may be from a stranger. Where standard error is closed or full, the exit code still tells.
pub(crate) fn say(message: &str) {
    let _ = writeln!(anstream::stderr(), "gpumon: {}", escaped(message));
}

/// Answers arguments that make no command: help and version as they are, an error in one line.
pub(crate) fn refuse_arguments(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Where even this cannot be written, nobody is there to be told.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    say(&complaint(error, &env::args().skip(1).collect::<Vec<_>>()));
    ExitCode::from(2)
}

/// What is wrong with the arguments, in one line: with the word that was probably meant where there is one, else with
/// where to read on.
fn complaint(error: &clap::Error, typed: &[String]) -> String {
    let words = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => vec![word.as_str()],
        Some(ContextValue::Strings(words)) => words.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    let first = |kind| words(kind).first().copied();
    let text = error.to_string();
    let help = format!("{} --help", asked_command(&text, typed));
    match error.kind() {
        ErrorKind::UnknownArgument => match (first(ContextKind::InvalidArg), first(ContextKind::SuggestedArg)) {
            (Some(typed), Some(meant)) => {
                return format!("unknown option '{typed}': did you mean '{meant}'? (see {help})");
            }
            (Some(typed), None) if typed.starts_with('-') => return format!("unknown option '{typed}'; see {help}"),
            (Some(typed), None) if text.contains("[-- <") => {
                return format!("unexpected argument '{typed}': a command to run goes after --; see {help}");
            }
            _ => {}
        },
        ErrorKind::InvalidSubcommand => {
            if let Some(typed) = first(ContextKind::InvalidSubcommand) {
                let valid = Args::command();
                let valid =
                    valid.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
                return match nearest(typed, valid).or_else(|| first(ContextKind::SuggestedSubcommand)) {
                    Some(meant) => format!("unknown command '{typed}': did you mean '{meant}'? (see {help})"),
                    None => format!("unknown command '{typed}'; see {help}"),
                };
            }
        }
        ErrorKind::InvalidValue => {
            let (argument, valid) = (first(ContextKind::InvalidArg), words(ContextKind::ValidValue));
            if let (Some(typed), Some(argument), false) = (first(ContextKind::InvalidValue), argument, valid.is_empty())
            {
                // Without the name of its value, as `--format <FORMAT>` has it.
                let argument = argument.split(' ').next().unwrap_or(argument);
                return match nearest(typed, valid.iter().copied()).or_else(|| first(ContextKind::SuggestedValue)) {
                    Some(meant) => format!("unknown value '{typed}' for {argument}: did you mean '{meant}'?"),
                    None => format!("unknown value '{typed}' for {argument}: give one of {}", valid.join(", ")),
                };
            }
        }
        _ => {}
    }
    let lines: Vec<_> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:"))
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
        .collect();
    let message = lines.join("; ").replace(":; ", ": ");
    // What Rust's own parser says of a number.
    let message = message.replace("invalid digit found in string", "give a whole number");
    let message = message.trim_start_matches("error: ");
    if message.ends_with('?') { message.to_owned() } else { format!("{message}; see {help}") }
}

/// `gpumon wait`: the command whose usage clap's text shows, or that was typed where it shows none.
fn asked_command(text: &str, typed: &[String]) -> String {
    let Some(usage) = text.lines().find_map(|line| line.trim_start().strip_prefix("Usage: ")) else {
        let is_command = |word: &&String| Args::command().find_subcommand(word).is_some();
        return typed.iter().find(is_command).map_or("gpumon".to_owned(), |name| format!("gpumon {name}"));
    };
    let is_name = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
    usage.split(' ').take_while(is_name).collect::<Vec<_>>().join(" ")
}

impl Failure {
    /// The arguments ask for what cannot be.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { error: Some(error.into()), code: 2 }
    }

    /// It fails with this code, which says the same as the message to a script.
    pub(crate) fn with_code(error: impl Into<anyhow::Error>, code: u8) -> Self {
        Self { error: Some(error.into()), code }
    }

    /// What the command printed says it all.
    pub(crate) fn told(code: u8) -> Self {
        Self { error: None, code }
    }

    /// What is still to be told.
    pub(crate) fn message(&self) -> Option<String> {
        self.error.as_ref().map(|error| format!("{error:#}"))
    }

    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    pub(crate) fn is_broken_pipe(&self) -> bool {
        let mut causes = self.error.iter().flat_map(anyhow::Error::chain);
        let io_error = causes.find_map(|cause| cause.downcast_ref::<io::Error>());
        io_error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// The exit code of a source that cannot be read.
pub(crate) fn code_of(error: &SourceError) -> u8 {
    match error {
        SourceError::BadScenario(_) => 2,
        SourceError::NoPermission => 4,
        SourceError::NoDevice => 6,
        SourceError::NoDriver => 9,
        SourceError::NoLibrary { .. } => 12,
        SourceError::VersionMismatch => 18,
        SourceError::Driver { .. } | SourceError::NoThread { .. } => 1,
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        let code = code_of(&error);
        Self { error: Some(error.into()), code }
    }
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Self {
        Self::usage(error)
    }
}

impl From<io::Error> for Failure {
    /// Of what a command prints; anything else says what was tried.
    fn from(error: io::Error) -> Self {
        Self { error: Some(anyhow::Error::from(error).context("cannot write the output")), code: 1 }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self { error: Some(error), code: 1 }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[track_caller]
    fn complains(arguments: &[&str], said: &str) {
        let error = Args::try_parse_from(["gpumon"].iter().chain(arguments)).unwrap_err();
        let typed: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(complaint(&error, &typed), said);
    }

    #[test]
    fn a_slip_is_answered_with_the_word_that_was_meant() {
        complains(&["--sorce", "sim"], "unknown option '--sorce': did you mean '--source'? (see gpumon --help)");
        complains(
            &["wait", "--fre", "1GiB"],
            "unknown option '--fre': did you mean '--free'? (see gpumon wait --help)",
        );
        complains(&["wiat"], "unknown command 'wiat': did you mean 'wait'? (see gpumon --help)");
        complains(&["wait", "--format", "uid"], "unknown value 'uid' for --format: did you mean 'uuid'?");
    }

    #[test]
    fn anything_else_is_answered_with_what_there_is() {
        complains(&["frobnicate"], "unknown command 'frobnicate'; see gpumon --help");
        complains(&["wait", "--zzz"], "unknown option '--zzz'; see gpumon wait --help");
        complains(&["wait", "--format", "json"], "unknown value 'json' for --format: give one of index, uuid");
        let said = "unexpected argument 'python': a command to run goes after --; see gpumon wait --help";
        complains(&["wait", "python"], said);
        let said = "invalid value '5' for '--interval-ms <MS>': 5 is not in 100..=60000; see gpumon top --help";
        complains(&["top", "--interval-ms", "5"], said);
        let said = "invalid value '20' for '--free <MEMORY>': no unit: did you mean 20GiB or 20MiB?";
        complains(&["wait", "--free", "20"], said);
    }
}
