//! `gpumon`: shows what a GPU does.
//!
//! [`main`] is a dispatcher; every command is one file in [`commands`]. What was typed is in [`args`].

#![forbid(unsafe_code)]

mod args;
mod commands;
mod exit;
mod local;
mod options;
mod smi;
mod table;

use std::process::ExitCode;

use clap::Parser;

use self::args::Args;

fn main() -> ExitCode {
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
