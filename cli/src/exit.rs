//! Exit codes, and which failure gets which.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use gpumon_probe::{untrusted::escaped, vendor::SourceError};
use gpumon_server::listen::ListenError;

use crate::{config::Refusal, grammar};

/// Why a command failed, and the exit code that says so to a script.
///
/// The codes are nvidia-smi's where it has one: 2 for a bad argument, 4 no permission, 6 no device,
/// 9 driver not loaded, 12 no library, 18 library and driver do not match; 1 for anything else.
#[derive(Debug)]
pub(crate) struct Failure {
    /// `None` where the command has reported it already.
    error: Option<anyhow::Error>,
    code: u8,
}

/// Tells the user, in one line: part of it may be from a stranger. Where standard error is closed
/// or full, the exit code still tells.
pub(crate) fn say(message: &str) {
    let _ = writeln!(anstream::stderr(), "gpumon: {}", escaped(message));
}

/// Prints why arguments make no command, or the help or version that they ask for.
pub(crate) fn refuse_arguments(error: &clap::Error) -> ExitCode {
    match error.print() {
        // A closed pipe is no failure: the reader has seen enough (`gpumon --help | head`).
        Err(failure) if !error.use_stderr() && failure.kind() != io::ErrorKind::BrokenPipe => {
            let failure = Failure::from(failure);
            failure.message().iter().for_each(|message| say(message));
            failure.exit_code()
        }
        // If an error cannot be written, another error cannot be read either.
        _ if error.use_stderr() => ExitCode::from(2),
        _ => ExitCode::SUCCESS,
    }
}

/// The same where files of settings may be what is wrong.
pub(crate) fn refuse(refusal: Refusal) -> ExitCode {
    match refusal {
        Refusal::Arguments(error) => return refuse_arguments(&plain(error)),
        Refusal::Settings(mistakes) => mistakes.iter().for_each(|mistake| say(mistake)),
    }
    ExitCode::from(2)
}

/// Help as it is documented, which it is not once switches can be switched off.
fn plain(error: clap::Error) -> clap::Error {
    let documented = grammar::command()
        .try_get_matches()
        .err()
        .filter(|plain| !(error.use_stderr() || plain.use_stderr()));
    documented.unwrap_or(error)
}

/// The result of a command, or of a part of it.
pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Returns the failure of an invalid argument, with a message as of [`format!`].
macro_rules! usage {
    ($($message:tt)*) => {
        $crate::exit::Failure::usage(::anyhow::anyhow!($($message)*))
    };
}
pub(crate) use usage;

impl Failure {
    /// The arguments ask for what cannot be.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self {
            error: Some(error.into()),
            code: 2,
        }
    }

    /// It fails with this code, which says the same as the message to a script.
    pub(crate) fn with_code(error: impl Into<anyhow::Error>, code: u8) -> Self {
        Self {
            error: Some(error.into()),
            code,
        }
    }

    /// What the command printed says it all.
    pub(crate) fn reported(code: u8) -> Self {
        Self { error: None, code }
    }

    /// The same, unless that was a success.
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
    /// Of what a command prints; anything else says what was tried.
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
