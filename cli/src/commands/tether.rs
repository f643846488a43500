//! `gpumon tether`: runs another program that ends when its parent process ends.

use std::{ffi::OsString, os::unix::process::CommandExt};

use anyhow::{Context, anyhow};
use gpumon_probe::child;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::exit::Result;

pub(crate) const COMMAND_NAME: &str = "tether";

/// Run a program in place of this process, and end it when the parent process ends for any reason
#[derive(Debug, clap::Args)]
pub(crate) struct TetherArgs {
    /// PID of the parent; exit immediately if the parent has another PID
    #[arg(value_name = "PID")]
    parent: u32,

    /// Program to run, with its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    program: Vec<OsString>,
}

pub(crate) fn run(args: &TetherArgs) -> Result {
    set_parent_process_death_signal(Some(Signal::TERM))
        .context("cannot watch the parent process")?;
    // The kernel was asked to send a signal when the parent ends. It sends no signal if the parent
    // had already ended by then.
    if getppid().is_none_or(|parent| parent.as_raw_nonzero().get().cast_unsigned() != args.parent) {
        return Err(anyhow!("the parent process has ended").into());
    }
    let Some((program, arguments)) = args.program.split_first() else {
        return Ok(());
    };
    let error = child::new_command(program).args(arguments).exec();
    Err(anyhow!(
        "cannot start {}: {error}; install the OpenSSH client",
        program.display()
    )
    .into())
}
