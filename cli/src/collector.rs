//! Starts `gpumon collect` as a child process when no server is running on this machine.
//!
//! The driver is read in a separate process, so that a hung driver cannot keep this process from
//! exiting. This process also does not wait while the driver is closed, which takes several
//! milliseconds.

use std::{
    ffi::OsString,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    process::{ChildStdin, Command, Stdio},
    time::Duration,
};

use anyhow::Context;
use gpumon_probe::child;

use crate::options::SourceArgs;

/// Returns the command that starts a collector. The collector ends when its standard input is
/// closed, and Ctrl-C in the terminal does not reach it.
pub(crate) fn build_command(source: &SourceArgs, interval: Duration) -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("cannot find the gpumon executable")?;
    let mut command = child::new_command(program);
    let arguments = ["collect", "--supervised", "--interval-ms"].map(OsString::from);
    command
        .args(source.to_arguments())
        .args(arguments)
        .arg(interval.as_millis().to_string());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0);
    Ok(command)
}

/// Asks the collector to change its sampling interval.
///
/// # Errors
/// Returns an error if the collector has ended.
pub(crate) fn set_interval(requests: &mut ChildStdin, interval: Duration) -> io::Result<()> {
    writeln!(requests, "{{\"interval_ms\":{}}}", interval.as_millis())
}

/// Returns the lines of `output` until it ends or cannot be read.
pub(crate) fn read_lines(output: Option<impl Read>) -> impl Iterator<Item = String> {
    let lines = output
        .into_iter()
        .flat_map(|output| BufReader::new(output).lines());
    lines.map_while(io::Result::ok)
}
