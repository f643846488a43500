//! The definition of the command line for tests, in which `main` does not run.

use clap::CommandFactory as _;

pub(super) fn build_default_command() -> clap::Command {
    crate::args::Args::command()
}
