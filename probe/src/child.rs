//! Programs that are started, none of which gets this one's secrets.

use std::{ffi::OsStr, process::Command};

/// Holds a token of `gpumon serve`, so that it is in no option: every user of the machine can read
/// those.
pub const TOKEN: &str = "GPUMON_TOKEN";

/// This program, with this process's environment but for secrets. Variables stay in the process
/// itself, where removing one would be `unsafe`.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_remove(TOKEN);
    command
}
