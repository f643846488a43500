//! Handing over of the devices, either to a command that replaces this process or by printing them.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::anyhow;
use clap::ValueEnum;
use rustix::fs::{Access, access};

use super::{reader::Reader, search::LockedDevice};
use crate::{
    exit::{Failure, Result, usage},
    terminal::output::print_raw,
    visible::VisibleName,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Index as in nvidia-smi for NVIDIA: 3, or 3:1 for a MIG device or a partition
    Index,
    /// UUID, which identifies the same GPU in every program
    Uuid,
}

/// The exit codes of env(1) and shells for a command that does not exist, and for a command that
/// cannot be started.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// Checks that the command exists before the wait for a GPU begins.
pub(crate) fn check_command(command: &[OsString]) -> Result {
    let Some(program) = command.first() else {
        return Ok(());
    };
    let name = || program.to_string_lossy().into_owned();
    let can_run = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let places: Vec<PathBuf> = if program.as_encoded_bytes().contains(&b'/') {
        vec![program.into()]
    } else {
        // Without `PATH`, the system searches its default folders when the command is started.
        let Some(path) = env::var_os("PATH") else {
            return Ok(());
        };
        env::split_paths(&path)
            .map(|folder| folder.join(program))
            .collect()
    };
    if places.iter().any(|place| can_run(place)) {
        return Ok(());
    }
    Err(match places.iter().find(|place| place.exists()) {
        Some(place) => Failure::with_code(
            anyhow!(
                "cannot run {}: the file is not executable (chmod +x)",
                place.display()
            ),
            NOT_STARTED,
        ),
        None => Failure::with_code(
            anyhow!(
                "cannot run {}: there is no such command; check its name and PATH",
                name()
            ),
            NOT_FOUND,
        ),
    })
}

/// Prints the devices and keeps them reserved for the time `hold` after this process has ended.
pub(crate) fn print_devices(
    mut found: Vec<LockedDevice>,
    format: Format,
    hold: Duration,
) -> Result {
    let name = |held: &LockedDevice| match format {
        Format::Index => held.candidate.index(),
        Format::Uuid => held.uuid.clone(),
    };
    let names = found.iter().map(name).collect::<Vec<_>>().join(",");
    // The devices are reserved before they are printed. If printing fails, they are released.
    let reserved = found
        .iter_mut()
        .try_for_each(|held| held.lock.reserve_after_exit(hold))
        .map_err(Failure::from);
    let printed = reserved.and_then(|()| print_raw(&(names + "\n")));
    if printed.is_err() {
        for held in &mut found {
            // An error is ignored: if the lock file cannot be written, it contains no reservation
            // either.
            let _ = held.lock.release();
        }
    }
    printed
}

/// Replaces this process with the command. The command and its child processes inherit the locks
/// and hold them until they end.
///
/// If possible, the vendor's environment variables are set to UUIDs, because the vendor's libraries
/// may number GPUs differently from gpumon.
pub(crate) fn run_command(
    found: &[LockedDevice],
    command: &[OsString],
    reader: &mut Reader,
) -> Failure {
    reader.close();
    let chosen: Vec<_> = found
        .iter()
        .filter_map(|held| held.candidate.visible_as.clone())
        .collect();
    if let Some(error) = found
        .iter()
        .find_map(|held| held.lock.make_inheritable().err())
    {
        return anyhow!("cannot pass the lock to the command: {error}").into();
    }
    let [program, arguments @ ..] = command else {
        return usage!("no command after --: add a command");
    };
    let error = Command::new(program)
        .args(arguments)
        .envs(VisibleName::to_variables(&chosen))
        .exec();
    make_start_failure(program, &error)
}

/// Returns the error for a command that could not be started, with the appropriate exit code.
pub(crate) fn make_start_failure(program: &OsStr, error: &io::Error) -> Failure {
    let code = if error.kind() == io::ErrorKind::NotFound {
        NOT_FOUND
    } else {
        NOT_STARTED
    };
    Failure::with_code(
        anyhow!("cannot run {}: {error}", program.to_string_lossy()),
        code,
    )
}
