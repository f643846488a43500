//! The `gpumon` program. All code is in the library, so that fuzz targets can call it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    gpumon_cli::main()
}
