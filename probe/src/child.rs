//! Starting of child processes without this process's secrets.

use std::{ffi::OsStr, process::Command};

/// The environment variable that contains the token for `gpumon serve`. A command-line option would
/// be visible to every user of the machine.
pub const TOKEN_VARIABLE: &str = "GPUMON_TOKEN";

/// Returns a command that runs the program with this process's environment, except for secrets. The
/// secrets are not removed from this process's own environment, because that would be `unsafe`.
pub fn new_command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_remove(TOKEN_VARIABLE);
    command
}
