//! The `gpumon` command, which monitors GPUs in JupyterLab, the browser and the terminal.

#![forbid(unsafe_code)]

mod args;
mod background;
mod child_processes;
mod command_definition;
mod commands;
mod config;
mod data_dir;
mod describe;
mod device_id;
mod exit;
mod feed;
mod fleet;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod gpu_lines;
mod json_text;
mod local_server;
mod options;
mod overview;
mod past_readings;
#[cfg(test)]
mod reference;
mod snapshot;
mod table;
mod terminal;
mod time_spans;
mod top;
mod visible_devices;
mod wait;
mod workload_run;

use std::{
    env,
    ffi::OsString,
    panic,
    path::Path,
    process::{self, ExitCode},
};

use clap::{CommandFactory, FromArgMatches as _};
use gpumon_workload::{lock_file, suggest};

use self::{args::Args, commands::smi, options::SourceArgs};

/// Disables colors on dumb terminals. Otherwise, `anstream` would print colors on them if `CI` is
/// set, because it then assumes that every terminal supports colors.
fn disable_colors_on_dumb_terminals() {
    if env::var_os("TERM").is_some_and(|terminal| terminal == "dumb") {
        anstream::ColorChoice::Never.write_global();
    }
}

/// Makes a panic on any thread end the process. Otherwise, a collector would seem healthy although
/// the thread that reads one of its GPUs has ended. Only `serve` restores the default behavior.
fn abort_on_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        report(panic);
        process::abort();
    }));
}

/// Parses the command line and runs its command.
pub fn main() -> ExitCode {
    abort_on_panic();
    command_definition::set_command_definition(|| {
        Args::command().override_help(overview::format_overview())
    });
    let mut words = env::args_os();
    let name = words.next().unwrap_or_default();
    let words: Vec<OsString> = words.collect();
    if Path::new(&name)
        .file_name()
        .is_some_and(|name| name == "nvidia-smi")
    {
        return smi::run_as_nvidia_smi(&[], &words, true);
    }
    let (source, rest) = SourceArgs::split_off_source_arguments(&words);
    let is_command = |word: &str| Args::command().find_subcommand(word).is_some();
    let texts: Vec<String> = rest
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if gpumon_smi::belongs_to_nvidia_smi(&texts, is_command) {
        // nvidia-smi commands are also accepted without the word `smi`. In this case, an option may
        // be a mistyped option of gpumon, so the command must not change the state of a GPU.
        let is_named = rest.first().is_some_and(|word| word == "smi");
        return smi::run_as_nvidia_smi(&source, &rest[usize::from(is_named)..], is_named);
    }
    disable_colors_on_dumb_terminals();
    let all: Vec<OsString> = env::args_os().collect();
    let resolved = match config::resolve_command_line(&command_definition::build_command(), &all) {
        Ok(resolved) => resolved,
        Err(refusal) => return exit::exit_with_refusal(refusal),
    };
    let args = match Args::from_arg_matches(&resolved.matches) {
        Ok(args) => args,
        Err(error) => return exit::exit_with_argument_error(&error),
    };
    match commands::dispatch(args, resolved) {
        Ok(()) => ExitCode::SUCCESS,
        // A closed pipe is not a failure: its reader needs no more output, as in `gpumon | head`.
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => exit::exit_with_failure(&failure),
    }
}
