//! `gpumon smi`: emulates nvidia-smi. gpumon also does this if it is started under the name
//! nvidia-smi.

use std::{ffi::OsString, process::ExitCode, time::Duration};

use gpumon_probe::{model::now_ms, vendor::SourceChoice};
use gpumon_server::frame::Answers;
use gpumon_smi::{AnswerSource, RecordedAnswers, Server};

use crate::{
    exit::{self, Failure, Result},
    local_server::ServerArgs,
    options::SourceArgs,
};

/// Run as nvidia-smi: same arguments, output and exit codes
///
/// To replace nvidia-smi for programs that parse its output, link gpumon under that name: `ln -s
/// $(which gpumon) ~/bin/nvidia-smi`. The options also work with plain `gpumon`: `gpumon -L`,
/// `gpumon -q`, `gpumon dmon`.
///
/// Commands and options that change a GPU, other commands such as `mig` and `clocks`, and unknown
/// options are passed, unchanged, to NVIDIA's own nvidia-smi: the first in `PATH` that is not
/// gpumon. They are refused if there is no such program, if the GPUs are simulated, or if `smi` was
/// not typed.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, override_usage = USAGE)]
pub(crate) struct SmiArgs {
    /// Arguments of nvidia-smi, after gpumon's own options; see `gpumon smi -h`
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    words: Vec<OsString>,
}

/// The usage line of `gpumon smi`. All arguments after gpumon's own options belong to nvidia-smi.
const USAGE: &str = "gpumon smi [--source <SOURCE>] [--nvml-lib <PATH>] [--config <FILE>] \
                     [--no-daemon] [ARGUMENTS]...";

pub(crate) fn run(source: &SourceArgs, args: &SmiArgs) -> Result {
    Failure::check_exit_code(run_smi(source, &args.words, true))
}

/// Runs an nvidia-smi command line without building gpumon's command-line parser, which saves time.
/// `source` contains the arguments for gpumon itself.
pub(crate) fn run_as_nvidia_smi(
    source: &[OsString],
    words: &[OsString],
    hands_over: bool,
) -> ExitCode {
    match SourceArgs::parse_source_arguments(source) {
        Ok(source) => ExitCode::from(run_smi(&source, words, hands_over)),
        Err(refusal) => exit::exit_with_refusal(refusal),
    }
}

fn run_smi(source: &SourceArgs, words: &[OsString], hands_over: bool) -> u8 {
    if source.is_simulated() {
        // The message is printed separately, because nvidia-smi's output has no place for it.
        exit::print_message("these GPUs are simulated");
    }
    let library = source.named_nvml_library();
    // If the arguments select a source, no server is used. If they name only an NVML library, a
    // server is used only if a variable or a settings file names the server.
    let is_any = source.source == SourceChoice::Auto && !source.no_daemon;
    let is_server_asked = is_any && (library.is_none() || ServerArgs::is_named_in_settings());
    let answers = AnswerSource {
        choice: source.source.clone(),
        library,
        server: if is_server_asked {
            Some(&LocalServer)
        } else {
            None
        },
        hands_over,
    };
    gpumon_smi::run(&answers, words).unwrap_or_else(|error| {
        exit::print_message(&format!("cannot write the output: {error}"));
        1
    })
}

/// The maximum time to wait for the server's response. A slower server is not used.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// A running server, which returns the driver's recorded answers over its local socket. A variable
/// or a settings file can name the server. Otherwise, any server on this machine is used.
struct LocalServer;

impl Server for LocalServer {
    fn read_answers(&self) -> Option<RecordedAnswers> {
        let server = ServerArgs::from_environment().connect().ok()?;
        let answer = server
            .send_get_request_within(ANSWER_TIMEOUT, "/api/v1/answers")
            .ok()?;
        let answers: Answers = serde_json::from_str(&answer.body).ok()?;
        // Simulated GPUs are shown only if the user named their server.
        let (platform, gpus) = answers.into_recent_answers(now_ms())?;
        Some(RecordedAnswers::new(platform, gpus))
            .filter(|recorded| ServerArgs::is_named_in_settings() || !recorded.is_simulated())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::args::Args;

    #[test]
    fn only_lines_without_gpumon_command_reach_nvidia_smi() {
        let is_command = |word: &str| Args::command().find_subcommand(word).is_some();
        let meant = |line: &str| {
            gpumon_smi::belongs_to_nvidia_smi(
                &line.split(' ').map(str::to_owned).collect::<Vec<_>>(),
                is_command,
            )
        };
        for line in ["-L", "-i 0 -q -d MEMORY", "topo -m", "smi -L"] {
            assert!(meant(line), "{line}");
        }
        for line in [
            "collect --count 1",
            "serve --port 1 -q",
            "wait --free 20GiB -- nvidia-smi -L",
            "doctor",
        ] {
            assert!(!meant(line), "{line}");
        }
    }
}
