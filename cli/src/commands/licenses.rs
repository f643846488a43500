//! `gpumon licenses`: prints the licenses of gpumon and its libraries.

use std::io;

use flate2::read::GzDecoder;

use crate::exit::Failure;

/// The license texts of the libraries, which `make licenses` collects and `build.rs` compresses.
const COMPRESSED_LICENSES: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/THIRD-PARTY-LICENSES.txt"));

/// Print the licenses of gpumon and of the libraries that it contains
#[derive(Debug, clap::Args)]
pub(crate) struct LicensesArgs {}

pub(crate) fn run() -> Result<(), Failure> {
    io::copy(
        &mut GzDecoder::new(COMPRESSED_LICENSES),
        &mut io::stdout().lock(),
    )?;
    Ok(())
}
