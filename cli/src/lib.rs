//! The `gpumon` command, which monitors GPUs in JupyterLab, the browser and the terminal.

#![forbid(unsafe_code)]

mod args;
mod background;
mod children;
mod collector;
mod commands;
mod config;
mod data_dir;
mod describe;
mod device_id;
mod driver;
mod exit;
mod feed;
mod fleet;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod gpu_lines;
mod grammar;
mod json_text;
mod local;
mod man;
mod moment;
mod options;
mod overview;
mod past;
mod process_tree;
mod recorded;
#[cfg(test)]
mod reference;
mod run;
mod shown_gpus;
mod shown_processes;
mod snapshot;
mod table;
mod terminal;
mod top;
mod visible;
mod wait;

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

/// Disables colors on dumb terminals. With `CI` set, `anstream` assumes that every terminal has
/// colors.
fn plain_on_dumb_terminals() {
    if env::var_os("TERM").is_some_and(|terminal| terminal == "dumb") {
        anstream::ColorChoice::Never.write_global();
    }
}

/// Makes a panic on any thread end the process: a collector without the thread of one GPU would
/// otherwise seem healthy. Only `serve` reverts this.
fn end_at_a_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        report(panic);
        process::abort();
    }));
}

/// Parses the command line and runs its command.
pub fn main() -> ExitCode {
    end_at_a_panic();
    grammar::define(|| Args::command().override_help(overview::format_overview()));
    let mut words = env::args_os();
    let name = words.next().unwrap_or_default();
    let words: Vec<OsString> = words.collect();
    if Path::new(&name)
        .file_name()
        .is_some_and(|name| name == "nvidia-smi")
    {
        return smi::run_as_nvidia_smi(&[], &words, true);
    }
    let (source, rest) = SourceArgs::told_apart(&words);
    let is_command = |word: &str| Args::command().find_subcommand(word).is_some();
    let texts: Vec<String> = rest
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if gpumon_smi::is_passthrough(&texts, is_command) {
        // Without the word `smi`, an option may be a typing mistake for one of gpumon's, so
        // nvidia-smi must not change any GPU state.
        let is_named = rest.first().is_some_and(|word| word == "smi");
        return smi::run_as_nvidia_smi(&source, &rest[usize::from(is_named)..], is_named);
    }
    plain_on_dumb_terminals();
    let all: Vec<OsString> = env::args_os().collect();
    let resolved = match config::resolve(&grammar::command(), &all) {
        Ok(resolved) => resolved,
        Err(refusal) => return exit::refuse(refusal),
    };
    let args = match Args::from_arg_matches(&resolved.matches) {
        Ok(args) => args,
        Err(error) => return exit::refuse_arguments(&error),
    };
    match commands::dispatch(args, resolved) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output has seen enough, as in `gpumon | head`.
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                exit::say(&message);
            }
            failure.exit_code()
        }
    }
}
