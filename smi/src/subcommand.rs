//! The definition of a subcommand, which consists of its syntax and its function.

use std::io::{self, Write};

use gpumon_probe::vendor::nvml::query::QueryBackend;

use super::{Refusal, form::SubcommandSyntax, switches::UsageError};

/// A subcommand's syntax and function.
pub(crate) struct Subcommand {
    pub(super) form: &'static SubcommandSyntax,
    run: SubcommandFunction,
}

/// A function that runs a subcommand with its arguments and returns the exit code.
pub(super) type SubcommandFunction =
    fn(&[String], &dyn QueryBackend, &mut dyn Write) -> Result<u8, SubcommandError>;

/// The reason why a subcommand has ended early.
#[derive(Debug)]
pub(super) enum SubcommandError {
    Refused(Refusal),
    /// The output could not be written.
    Output(io::Error),
}

impl Subcommand {
    pub(super) const fn new(form: &'static SubcommandSyntax, run: SubcommandFunction) -> Self {
        Self { form, run }
    }

    /// Runs the subcommand until it ends, or until SIGINT ends the process. As in nvidia-smi, a
    /// refusal is written to the output, unless NVIDIA's own tool takes over. A closed pipe is not
    /// an error.
    pub(crate) fn run(
        &self,
        arguments: &[String],
        driver: &dyn QueryBackend,
        output: &mut dyn Write,
    ) -> Result<u8, SubcommandError> {
        let ended = (self.run)(arguments, driver, output).or_else(|stop| match stop {
            SubcommandError::Refused(refusal) if !refusal.is_left_to_nvidia_smi => Ok(output
                .write_all(refusal.text.as_bytes())
                .map(|()| refusal.code)?),
            stop => Err(stop),
        });
        match ended.and_then(|code| Ok(output.flush().map(|()| code)?)) {
            Err(SubcommandError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(0)
            }
            ended => ended,
        }
    }
}

impl SubcommandError {
    pub(super) fn is_left_to_nvidia_smi(&self) -> bool {
        matches!(
            self,
            Self::Refused(Refusal {
                is_left_to_nvidia_smi: true,
                ..
            })
        )
    }
}

impl From<Refusal> for SubcommandError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<io::Error> for SubcommandError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<UsageError<'_>> for SubcommandError {
    fn from(fault: UsageError<'_>) -> Self {
        Self::Refused(fault.into())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{
        subcommands::{find_subcommand, is_handed_over},
        tests::scripted::ScriptedBackend,
    };

    /// Runs a subcommand line, and returns its output and exit code.
    pub(in super::super) fn run_line(line: &str, driver: &dyn QueryBackend) -> (String, u8) {
        let mut words = line.split_whitespace().map(str::to_owned);
        let subcommand = find_subcommand(&words.next().unwrap()).unwrap();
        let mut output = Vec::new();
        let code = match subcommand.run(&words.collect::<Vec<_>>(), driver, &mut output) {
            Ok(code) => code,
            Err(SubcommandError::Refused(refusal)) => {
                output.extend(refusal.text.bytes());
                refusal.code
            }
            Err(SubcommandError::Output(error)) => panic!("{error}"),
        };
        (String::from_utf8(output).unwrap(), code)
    }

    struct ClosedPipe;

    impl Write for ClosedPipe {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn closed_pipe_is_not_reported_as_failure() {
        let driver = ScriptedBackend::default();
        for name in ["topo", "nvlink", "pmon", "dmon"] {
            let code = find_subcommand(name)
                .unwrap()
                .run(&["-h".to_owned()], &driver, &mut ClosedPipe)
                .unwrap();
            assert_eq!(code, 0, "{name}");
        }
    }

    #[test]
    fn unknown_name_does_not_match_subcommand() {
        assert!(find_subcommand("bogus").is_none() && find_subcommand("mig").is_none());
        assert!(is_handed_over("mig") && !is_handed_over("dmon"));
    }

    #[test]
    fn every_subcommand_has_help() {
        let driver = ScriptedBackend::default();
        for (name, code_of_fault) in [("dmon", 0), ("pmon", 0), ("topo", 2), ("nvlink", 2)] {
            let (help, code) = run_line(&format!("{name} -h"), &driver);
            assert!(
                help.contains("[-h | --help]:") && code == 0,
                "{name}: {help}"
            );
            let (text, code) = run_line(&format!("{name} --bogus"), &driver);
            assert!(
                text.starts_with("Option \"--bogus\" is not recognized.\n"),
                "{name}: {text}"
            );
            assert_eq!(code, code_of_fault, "{name}");
        }
    }

    #[test]
    fn options_left_to_real_tool_are_refused() {
        for (line, reason) in [
            ("nvlink -re", "changes the GPU, which gpumon never does"),
            ("nvlink -ec", "is not part of gpumon"),
        ] {
            let text = format!("gpumon: '{line}' {reason}; use NVIDIA's own nvidia-smi for it\n");
            assert_eq!(run_line(line, &ScriptedBackend::default()), (text, 3));
        }
    }
}
