//! Global access to the definition of the command line, which refers to every command. `main` sets
//! the definition, so that commands and settings files can read it without depending on each other.

#[cfg(any(test, fuzzing))]
mod testing;

use std::sync::OnceLock;

use clap::Command;

#[cfg(any(test, fuzzing))]
use self::testing::undefined;

static DEFINITION: OnceLock<fn() -> Command> = OnceLock::new();

/// Sets the definition of the command line.
pub(crate) fn define(definition: fn() -> Command) {
    let _ = DEFINITION.set(definition);
}

/// Returns the definition of `gpumon` with all its commands and options.
///
/// # Panics
/// Panics if [`define`] was not called.
pub(crate) fn command() -> Command {
    DEFINITION.get().copied().unwrap_or(undefined)()
}

#[cfg(not(any(test, fuzzing)))]
fn undefined() -> Command {
    unreachable!("main hands over the definition of the command line first")
}
