//! The type of a subcommand: its function and its syntax.

use std::io::{self, Write};

use gpumon_probe::vendor::nvml::query::QueryBackend;

use super::{Refusal, form::Form, switches::UsageError};

/// The syntax and the function of a subcommand.
pub(crate) struct Subcommand {
    pub(super) form: &'static Form,
    run: Run,
}

/// Runs a subcommand with its arguments and returns the exit code.
pub(super) type Run = fn(&[String], &dyn QueryBackend, &mut dyn Write) -> Result<u8, Stop>;

/// The reason why a subcommand ended early.
#[derive(Debug)]
pub(super) enum Stop {
    Refused(Refusal),
    /// The output could not be written.
    Output(io::Error),
}

impl Subcommand {
    pub(super) const fn new(form: &'static Form, run: Run) -> Self {
        Self { form, run }
    }

    /// Runs the subcommand to its end, or until SIGINT ends the process. A refusal is written to
    /// the output, as in nvidia-smi, unless it is left to NVIDIA's own tool. A closed pipe is no
    /// error.
    pub(crate) fn run(
        &self,
        arguments: &[String],
        driver: &dyn QueryBackend,
        output: &mut dyn Write,
    ) -> Result<u8, Stop> {
        let ended = (self.run)(arguments, driver, output).or_else(|stop| match stop {
            Stop::Refused(refusal) if !refusal.is_left_to_nvidia_smi => Ok(output
                .write_all(refusal.text.as_bytes())
                .map(|()| refusal.code)?),
            stop => Err(stop),
        });
        match ended.and_then(|code| Ok(output.flush().map(|()| code)?)) {
            Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
            ended => ended,
        }
    }
}

impl Stop {
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

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<UsageError<'_>> for Stop {
    fn from(fault: UsageError<'_>) -> Self {
        Self::Refused(fault.into())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{
        subcommands::{is_handed_over, subcommand},
        tests::scripted::ScriptedBackend,
    };

    /// Returns the output and the exit code of a subcommand line.
    pub(in super::super) fn typed(line: &str, driver: &dyn QueryBackend) -> (String, u8) {
        let mut words = line.split_whitespace().map(str::to_owned);
        let subcommand = subcommand(&words.next().unwrap()).unwrap();
        let mut output = Vec::new();
        let code = match subcommand.run(&words.collect::<Vec<_>>(), driver, &mut output) {
            Ok(code) => code,
            Err(Stop::Refused(refusal)) => {
                output.extend(refusal.text.bytes());
                refusal.code
            }
            Err(Stop::Output(error)) => panic!("{error}"),
        };
        (String::from_utf8(output).unwrap(), code)
    }

    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_no_failure() {
        let driver = ScriptedBackend::default();
        for name in ["topo", "nvlink", "pmon", "dmon"] {
            let code = subcommand(name)
                .unwrap()
                .run(&["-h".to_owned()], &driver, &mut Closed)
                .unwrap();
            assert_eq!(code, 0, "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_none() {
        assert!(subcommand("bogus").is_none() && subcommand("mig").is_none());
        assert!(is_handed_over("mig") && !is_handed_over("dmon"));
    }

    #[test]
    fn every_subcommand_explains_itself() {
        let driver = ScriptedBackend::default();
        for (name, code_of_fault) in [("dmon", 0), ("pmon", 0), ("topo", 2), ("nvlink", 2)] {
            let (help, code) = typed(&format!("{name} -h"), &driver);
            assert!(
                help.contains("[-h | --help]:") && code == 0,
                "{name}: {help}"
            );
            let (text, code) = typed(&format!("{name} --bogus"), &driver);
            assert!(
                text.starts_with("Option \"--bogus\" is not recognized.\n"),
                "{name}: {text}"
            );
            assert_eq!(code, code_of_fault, "{name}");
        }
    }

    #[test]
    fn switches_of_nvidias_tool_are_refused() {
        for (line, reason) in [
            ("nvlink -re", "changes the GPU, which gpumon never does"),
            ("nvlink -ec", "is not part of gpumon"),
        ] {
            let text = format!("gpumon: '{line}' {reason}; use NVIDIA's own nvidia-smi for it\n");
            assert_eq!(typed(line, &ScriptedBackend::default()), (text, 3));
        }
    }
}
