//! `gpumon licenses`: prints the licenses of gpumon and its libraries.

use std::io;

use flate2::read::GzDecoder;

use crate::exit::Failure;

/// The license texts that `make licenses` collects from the libraries, compressed by `build.rs`.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/THIRD-PARTY-LICENSES.txt"));

/// Print the licenses of gpumon and of the libraries in it
#[derive(Debug, clap::Args)]
pub(crate) struct LicensesArgs {}

pub(crate) fn run() -> Result<(), Failure> {
    io::copy(&mut GzDecoder::new(PACKED), &mut io::stdout().lock())?;
    Ok(())
}
