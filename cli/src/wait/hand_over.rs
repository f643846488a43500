//! Hands the devices over: to a command that this process becomes, or to the reader of its output.

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

use super::{reader::Reader, search::Held};
use crate::{
    exit::{Failure, Result, usage},
    terminal::output::print_raw,
    visible::VisibleAs,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Index, for NVIDIA as in nvidia-smi: 3, or 3:1 for a MIG device or a partition
    Index,
    /// UUID, which identifies the same GPU in every program
    Uuid,
}

/// The exit codes for a command that does not exist and for one that cannot be started, as used by
/// env(1) and shells.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// Checks that the command exists before waiting for a GPU to run it on.
pub(crate) fn check(command: &[OsString]) -> Result {
    let Some(program) = command.first() else {
        return Ok(());
    };
    let name = || program.to_string_lossy().into_owned();
    let can_run = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let places: Vec<PathBuf> = if program.as_encoded_bytes().contains(&b'/') {
        vec![program.into()]
    } else {
        // Without `PATH`, the system searches its default folders.
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
                "cannot run {}: it is not executable (chmod +x)",
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

/// Prints the devices and keeps them reserved for a while after this process has ended.
pub(crate) fn hand_over(mut found: Vec<Held>, format: Format, hold: Duration) -> Result {
    let name = |held: &Held| match format {
        Format::Index => held.candidate.index(),
        Format::Uuid => held.uuid.clone(),
    };
    let names = found.iter().map(name).collect::<Vec<_>>().join(",");
    // A device is printed only if it has been reserved, and released if printing fails.
    let reserved = found
        .iter_mut()
        .try_for_each(|held| held.lock.reserve(hold))
        .map_err(Failure::from);
    let printed = reserved.and_then(|()| print_raw(&(names + "\n")));
    if printed.is_err() {
        for held in &mut found {
            // If the lock file cannot be written, the reservation was not written either.
            let _ = held.lock.release();
        }
    }
    printed
}

/// Replaces this process by the command. The command and its child processes inherit the locks and
/// keep them until they end.
///
/// If possible, the environment variables of the GPUs' vendor contain UUIDs, because the vendor's
/// libraries number GPUs differently from gpumon.
pub(crate) fn run(found: &[Held], command: &[OsString], reader: &mut Reader) -> Failure {
    reader.close();
    let chosen: Vec<_> = found
        .iter()
        .filter_map(|held| held.candidate.visible_as.clone())
        .collect();
    if let Some(error) = found.iter().find_map(|held| held.lock.inherit().err()) {
        return anyhow!("cannot keep the lock for the command: {error}").into();
    }
    let [program, arguments @ ..] = command else {
        return usage!("no command after --: name one");
    };
    let error = Command::new(program)
        .args(arguments)
        .envs(VisibleAs::variables(&chosen))
        .exec();
    not_started(program, &error)
}

/// Returns the error for a command that cannot be started, with its exit code.
pub(crate) fn not_started(program: &OsStr, error: &io::Error) -> Failure {
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
