//! `gpumon`: shows what a GPU does.
//!
//! [`main`] is a dispatcher; every command is one file in [`commands`]. What was typed is in [`args`].

#![forbid(unsafe_code)]

mod args;
mod commands;
mod exit;
mod local;
mod man;
mod options;
mod smi;
mod suggest;
mod table;
mod top;
mod wait;

use std::{env, path::Path, process::ExitCode};

use clap::Parser;

use self::{args::Args, options::SourceArgs};

/// nvidia-smi's own command line, which gpumon's is not asked about.
fn smi_face(words: &[String]) -> ExitCode {
    match SourceArgs::from_environment() {
        Ok(source) => ExitCode::from(smi::run(&source, words)),
        Err(error) => {
            exit::say(&error.to_string());
            ExitCode::from(2)
        }
    }
}

fn main() -> ExitCode {
    let mut words = env::args_os().map(|word| word.to_string_lossy().into_owned());
    let name = words.next().unwrap_or_default();
    let words: Vec<String> = words.collect();
    let is_named = Path::new(&name).file_name().is_some_and(|name| name == "nvidia-smi");
    if is_named || smi::is_meant(&words) {
        let behind = if is_named || words[0] != "smi" { &words[..] } else { &words[1..] };
        return smi_face(behind);
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return exit::refuse_arguments(&error),
    };
    match commands::dispatch(args) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough (`gpumon | head`).
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                exit::say(&message);
            }
            failure.exit_code()
        }
    }
}
