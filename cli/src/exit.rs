//! Failures of commands, and their exit codes.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use gpumon_probe::{untrusted::escape_untrusted, vendor::SourceError};
use gpumon_server::listen::ListenError;

use crate::{command_definition, config::Refusal};

/// The reason why a command failed, and the exit code for scripts.
///
/// Some codes have the same meaning as in nvidia-smi: 2 invalid argument, 4 no permission, 6 no
/// device, 9 driver not loaded, 12 no library, 18 versions of library and driver do not match. All
/// other failures have the code 1, unless the command defines another code.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The error, or `None` if the command has already printed it.
    error: Option<anyhow::Error>,
    code: u8,
}

/// Prints a message for the user on one line. Control characters are escaped, because parts of the
/// message may be untrusted. Write errors are ignored, because the exit code still reports the
/// failure.
pub(crate) fn print_message(message: &str) {
    let _ = writeln!(anstream::stderr(), "gpumon: {}", escape_untrusted(message));
}

/// Prints the error of a failed command, unless the command has already printed it.
pub(crate) fn exit_with_failure(failure: &Failure) -> ExitCode {
    if let Some(message) = failure.message() {
        print_message(&message);
    }
    ExitCode::from(failure.code)
}

/// Prints the error for invalid arguments, or the requested help or version.
pub(crate) fn exit_with_argument_error(error: &clap::Error) -> ExitCode {
    match error.print() {
        // A closed pipe is not a failure: its reader needs no more output, as in `gpumon --help |
        // head`.
        Err(failure) if !error.use_stderr() && failure.kind() != io::ErrorKind::BrokenPipe => {
            exit_with_failure(&failure.into())
        }
        // A failure to write to standard error cannot be reported, so only the exit code is
        // returned.
        _ if error.use_stderr() => ExitCode::from(2),
        _ => ExitCode::SUCCESS,
    }
}

/// Prints the reason why a command line was refused: invalid arguments, or mistakes in settings
/// files. If the command line requested the help or the version, prints that instead.
pub(crate) fn exit_with_refusal(refusal: Refusal) -> ExitCode {
    match refusal {
        Refusal::Arguments(error) => return exit_with_argument_error(&use_documented_help(error)),
        Refusal::Settings(mistakes) => mistakes.iter().for_each(|mistake| print_message(mistake)),
    }
    ExitCode::from(2)
}

/// Returns the help generated from the documented definitions. The definitions prepared by
/// [`crate::config`] are unsuitable for help, because they make switches look like options with
/// values.
fn use_documented_help(error: clap::Error) -> clap::Error {
    let documented = command_definition::build_command()
        .try_get_matches()
        .err()
        .filter(|plain| !(error.use_stderr() || plain.use_stderr()));
    documented.unwrap_or(error)
}

/// The result of a command or of a part of a command.
pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Creates a failure for an invalid argument. The message is formatted like in [`format!`].
macro_rules! usage {
    ($($message:tt)*) => {
        $crate::exit::Failure::from_usage_error(::anyhow::anyhow!($($message)*))
    };
}
pub(crate) use usage;

impl Failure {
    /// Returns the failure for invalid arguments.
    pub(crate) fn from_usage_error(error: impl Into<anyhow::Error>) -> Self {
        Self::with_code(error, 2)
    }

    /// Returns a failure with the exit code `code`. The caller must choose a code that matches the
    /// error.
    pub(crate) fn with_code(error: impl Into<anyhow::Error>, code: u8) -> Self {
        Self {
            error: Some(error.into()),
            code,
        }
    }

    /// Returns a failure whose error has already been printed.
    pub(crate) fn from_printed_error(code: u8) -> Self {
        Self { error: None, code }
    }

    /// Returns `Ok` if `code` is 0, and otherwise a failure whose error has already been printed.
    pub(crate) fn check_exit_code(code: u8) -> Result {
        if code == 0 {
            Ok(())
        } else {
            Err(Self::from_printed_error(code))
        }
    }

    pub(crate) fn message(&self) -> Option<String> {
        self.error.as_ref().map(|error| format!("{error:#}"))
    }

    /// Returns the message of a failure to read the GPUs.
    pub(crate) fn describe_read_failure(&self) -> String {
        self.message()
            .unwrap_or_else(|| "the GPUs cannot be read".to_owned())
    }

    pub(crate) fn is_broken_pipe(&self) -> bool {
        let mut causes = self.error.iter().flat_map(anyhow::Error::chain);
        let io_error = causes.find_map(|cause| cause.downcast_ref::<io::Error>());
        io_error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }
}

pub(crate) fn find_source_error_code(error: &SourceError) -> u8 {
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
        let code = find_source_error_code(&error);
        Self::with_code(error, code)
    }
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Self {
        Self::from_usage_error(error)
    }
}

impl From<io::Error> for Failure {
    /// Converts an error that occurred while the output was printed. Other I/O errors must not be
    /// converted directly: add a context that names the operation.
    fn from(error: io::Error) -> Self {
        Self::with_code(
            anyhow::Error::from(error).context("cannot write the output"),
            1,
        )
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::with_code(error, 1)
    }
}
