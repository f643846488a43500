//! `gpumon`, the program. All of it is in the library, where fuzzing reaches it, too.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    gpumon_cli::main()
}
