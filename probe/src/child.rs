//! Starting of programs without this process's secrets.

use std::{ffi::OsStr, process::Command};

/// The environment variable with a token for `gpumon serve`. An option would be visible to every
/// user of the machine.
pub const TOKEN: &str = "GPUMON_TOKEN";

/// Returns a command that runs the program with this process's environment, except for secrets. The
/// variable is not removed from this process, because that would be `unsafe`.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_remove(TOKEN);
    command
}
