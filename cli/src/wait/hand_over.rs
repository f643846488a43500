//! Gives away what was found: to a command that this process becomes, or to whoever reads its
//! output.

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

/// There is no such command, and it cannot be started; as env(1) and shells have it.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// Whether there is such a command, before anybody waits for a GPU to run it on.
pub(crate) fn check(command: &[OsString]) -> Result {
    let Some(program) = command.first() else {
        return Ok(());
    };
    let name = || program.to_string_lossy().into_owned();
    let can_run = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let places: Vec<PathBuf> = if program.as_encoded_bytes().contains(&b'/') {
        vec![program.into()]
    } else {
        // Where nothing says where to look, the system knows.
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

/// Prints what was found, and keeps it reserved for a while after this process.
pub(crate) fn hand_over(mut found: Vec<Held>, format: Format, hold: Duration) -> Result {
    let name = |held: &Held| match format {
        Format::Index => held.candidate.index(),
        Format::Uuid => held.uuid.clone(),
    };
    let names = found.iter().map(name).collect::<Vec<_>>().join(",");
    // Nothing is printed that is not reserved, and nothing stays reserved that nobody has read.
    let reserved = found
        .iter_mut()
        .try_for_each(|held| held.lock.reserve(hold))
        .map_err(Failure::from);
    let printed = reserved.and_then(|()| print_raw(&(names + "\n")));
    if printed.is_err() {
        for held in &mut found {
            // What could not be written need not be taken back.
            let _ = held.lock.release();
        }
    }
    printed
}

/// Becomes the command. It inherits the locks, so that they last as long as it does, and what it
/// leaves running.
///
/// The variables of the GPUs' vendor name them by UUID if they can: the libraries count in another
/// order than gpumon.
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

/// Why a command cannot be started, with the exit code that says so.
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
