//! Exit codes, and which failure gets which.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use gpumon_probe::source::SourceError;
use gpumon_server::listen::ListenError;

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

/// Tells the user. Where standard error is closed or full, the exit code still tells.
pub(crate) fn say(message: &str) {
    let _ = writeln!(anstream::stderr(), "gpumon: {message}");
}

/// Answers arguments that make no command: help and version as they are, an error in one line.
pub(crate) fn refuse_arguments(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Where even this cannot be written, nobody is there to be told.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    let lines: Vec<_> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:"))
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
        .collect();
    let message = lines.join("; ").replace(":; ", ": ");
    say(&format!("{}; see gpumon --help", message.trim_start_matches("error: ")));
    ExitCode::from(2)
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
    fn from(error: io::Error) -> Self {
        Self { error: Some(error.into()), code: 1 }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self { error: Some(error), code: 1 }
    }
}
