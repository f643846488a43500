//! Gives away what was found: to a command that this process becomes, or to whoever reads its output.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::unix::process::CommandExt,
    process::Command,
    time::Duration,
};

use anyhow::anyhow;
use clap::ValueEnum;

use super::{
    reader::Reader,
    search::Held,
    visible::{DEVICES, ORDER, PCI_ORDER},
};
use crate::exit::Failure;

/// Under which name a GPU is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The index that NVML, nvidia-smi and gpumon count by, as 3, or 3:1 for a MIG device
    Index,
    /// The UUID, which means the same GPU to every program
    Uuid,
}

/// There is no such command, and it cannot be started; as env(1) and shells have it.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// Prints what was found, and keeps it reserved for a while after this process.
pub(crate) fn hand_over(mut found: Vec<Held>, format: Format, hold: Duration) -> Result<(), Failure> {
    let name = |held: &Held| match format {
        Format::Index => held.candidate.index(),
        Format::Uuid => held.uuid.clone(),
    };
    let names = found.iter().map(name).collect::<Vec<_>>().join(",");
    let mut out = io::stdout().lock();
    // Where nobody reads it, nothing is reserved. Until this process ends, nobody else can take it in any case.
    writeln!(out, "{names}")?;
    out.flush()?;
    for held in &mut found {
        held.lock.reserve(hold)?;
    }
    Ok(())
}

/// Becomes the command. It inherits the locks, so that they last as long as it does, and what it leaves running.
///
/// The GPUs are given by UUID: CUDA counts them in another order than NVML unless it is told not to, which it is too,
/// for programs that count themselves.
pub(crate) fn run(found: &[Held], command: &[OsString], reader: &mut Reader) -> Failure {
    reader.close();
    let uuids = found.iter().map(|held| held.uuid.as_str()).collect::<Vec<_>>().join(",");
    if let Some(error) = found.iter().find_map(|held| held.lock.pass_on().err()) {
        return error.into();
    }
    let [program, arguments @ ..] = command else { return Failure::usage(anyhow!("no command after --: name one")) };
    let error = Command::new(program).args(arguments).env(DEVICES, uuids).env(ORDER, PCI_ORDER).exec();
    let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED };
    Failure::with_code(anyhow!("cannot run {}: {error}", program.to_string_lossy()), code)
}
