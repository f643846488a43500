//! A `gpumon collect` of a command's own, for a machine on which no server runs.
//!
//! Another process reads the driver, so that one which hangs there, beyond rescue perhaps, does not
//! keep this one from ending; and letting go of the driver, which takes it milliseconds, is not
//! waited for.

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

/// What starts one, which ends with its standard input. An interrupt of the terminal is not meant
/// for it.
pub(crate) fn command(source: &SourceArgs, interval: Duration) -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("cannot find gpumon's own program file")?;
    let mut command = child::command(program);
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

/// Has samples come so often from now on.
///
/// # Errors
/// It has ended.
pub(crate) fn set_interval(requests: &mut ChildStdin, interval: Duration) -> io::Result<()> {
    writeln!(requests, "{{\"interval_ms\":{}}}", interval.as_millis())
}

/// Returns the lines of an output until it ends or cannot be read.
pub(crate) fn read_lines(output: Option<impl Read>) -> impl Iterator<Item = String> {
    let lines = output
        .into_iter()
        .flat_map(|output| BufReader::new(output).lines());
    lines.map_while(io::Result::ok)
}
