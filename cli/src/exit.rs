//! Exit codes of failures.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use gpumon_probe::{untrusted::escaped, vendor::SourceError};
use gpumon_server::listen::ListenError;

use crate::{config::Refusal, grammar};

/// The reason why a command failed, with the exit code for scripts.
///
/// The codes are nvidia-smi's where it has one: 2 for a bad argument, 4 no permission, 6 no device,
/// 9 driver not loaded, 12 no library, 18 library and driver do not match; 1 for anything else.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The error; `None` if the command has printed it already.
    error: Option<anyhow::Error>,
    code: u8,
}

/// Prints a message for the user on one line, with control characters escaped, because parts of the
/// message may be untrusted. If standard error cannot be written, the exit code still reports the
/// failure.
pub(crate) fn say(message: &str) {
    let _ = writeln!(anstream::stderr(), "gpumon: {}", escaped(message));
}

/// Prints the error of invalid arguments, or the help or version that was requested.
pub(crate) fn refuse_arguments(error: &clap::Error) -> ExitCode {
    match error.print() {
        // A closed pipe is no failure: the reader has seen enough, as in `gpumon --help | head`.
        Err(failure) if !error.use_stderr() && failure.kind() != io::ErrorKind::BrokenPipe => {
            let failure = Failure::from(failure);
            failure.message().iter().for_each(|message| say(message));
            failure.exit_code()
        }
        // If standard error cannot be written, no other error can be reported there.
        _ if error.use_stderr() => ExitCode::from(2),
        _ => ExitCode::SUCCESS,
    }
}

/// Prints why a command line was refused: invalid arguments, a request for help, or mistakes in
/// settings files.
pub(crate) fn refuse(refusal: Refusal) -> ExitCode {
    match refusal {
        Refusal::Arguments(error) => return refuse_arguments(&plain(error)),
        Refusal::Settings(mistakes) => mistakes.iter().for_each(|mistake| say(mistake)),
    }
    ExitCode::from(2)
}

/// Returns help from the documented definitions. The definitions that [`crate::config`] prepares
/// show switches as options with values.
fn plain(error: clap::Error) -> clap::Error {
    let documented = grammar::command()
        .try_get_matches()
        .err()
        .filter(|plain| !(error.use_stderr() || plain.use_stderr()));
    documented.unwrap_or(error)
}

/// The result of a command or a part of it.
pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Returns the failure for an invalid argument, with a message formatted like [`format!`].
macro_rules! usage {
    ($($message:tt)*) => {
        $crate::exit::Failure::usage(::anyhow::anyhow!($($message)*))
    };
}
pub(crate) use usage;

impl Failure {
    /// Returns the failure for invalid arguments.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self {
            error: Some(error.into()),
            code: 2,
        }
    }

    /// Returns a failure with this exit code, which must match the message.
    pub(crate) fn with_code(error: impl Into<anyhow::Error>, code: u8) -> Self {
        Self {
            error: Some(error.into()),
            code,
        }
    }

    /// Returns a failure that the command has already printed.
    pub(crate) fn reported(code: u8) -> Self {
        Self { error: None, code }
    }

    /// Returns a failure that the command has already printed, or `Ok` if the code is 0.
    pub(crate) fn unless_success(code: u8) -> Result {
        if code == 0 {
            Ok(())
        } else {
            Err(Self::reported(code))
        }
    }

    pub(crate) fn message(&self) -> Option<String> {
        self.error.as_ref().map(|error| format!("{error:#}"))
    }

    /// Returns the message of a failure to read the GPUs.
    pub(crate) fn describe(&self) -> String {
        self.message()
            .unwrap_or_else(|| "the GPUs cannot be read".to_owned())
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

pub(crate) fn code_of(error: &SourceError) -> u8 {
    match error {
        SourceError::BadScenario(_) => 2,
        SourceError::NoPermission(_) => 4,
        SourceError::NoDevice(_) => 6,
        SourceError::NoDriver(_) => 9,
        SourceError::NoLibrary(_) => 12,
        SourceError::VersionMismatch(_) => 18,
        SourceError::Driver(_) | SourceError::NoThread { .. } => 1,
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        let code = code_of(&error);
        Self {
            error: Some(error.into()),
            code,
        }
    }
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Self {
        Self::usage(error)
    }
}

impl From<io::Error> for Failure {
    /// Converts an error from printing the output. Other I/O errors must be given a context that
    /// names the operation.
    fn from(error: io::Error) -> Self {
        Self {
            error: Some(anyhow::Error::from(error).context("cannot write the output")),
            code: 1,
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self {
            error: Some(error),
            code: 1,
        }
    }
}
