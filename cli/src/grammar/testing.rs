//! Tests have no `main` that hands anything over.

use clap::CommandFactory as _;

pub(super) fn undefined() -> clap::Command {
    crate::args::Args::command()
}
