//! The default definition in tests, in which `main` does not set one.

use clap::CommandFactory as _;

pub(super) fn undefined() -> clap::Command {
    crate::args::Args::command()
}
