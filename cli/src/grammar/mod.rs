//! The definition of the command line, which names every command: `main` hands it over, so that
//! commands and settings files can ask what there is without knowing each other.

#[cfg(any(test, fuzzing))]
mod testing;

use std::sync::OnceLock;

use clap::Command;

#[cfg(any(test, fuzzing))]
use self::testing::undefined;

static DEFINITION: OnceLock<fn() -> Command> = OnceLock::new();

/// From now on, this is the command line.
pub(crate) fn define(definition: fn() -> Command) {
    let _ = DEFINITION.set(definition);
}

/// `gpumon` with all its commands and options.
///
/// # Panics
/// Where nobody has handed it over.
pub(crate) fn command() -> Command {
    DEFINITION.get().copied().unwrap_or(undefined)()
}

#[cfg(not(any(test, fuzzing)))]
fn undefined() -> Command {
    unreachable!("main hands over the definition of the command line first")
}
