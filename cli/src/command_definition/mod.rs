//! Global access to the definition of the command line, which includes every command. `main` sets
//! the definition. The modules for commands and for settings files read it from here, so that they
//! need not depend on each other.

#[cfg(any(test, fuzzing))]
mod testing;

use std::sync::OnceLock;

use clap::Command;

#[cfg(any(test, fuzzing))]
use testing::build_default_command;

static DEFINITION: OnceLock<fn() -> Command> = OnceLock::new();

/// Sets the definition of the command line.
pub(crate) fn set_command_definition(definition: fn() -> Command) {
    let _ = DEFINITION.set(definition);
}

/// Returns the definition of `gpumon` with all its commands and options.
///
/// # Panics
/// Panics if [`set_command_definition`] was not called.
pub(crate) fn build_command() -> Command {
    DEFINITION.get().copied().unwrap_or(build_default_command)()
}

#[cfg(not(any(test, fuzzing)))]
fn build_default_command() -> Command {
    unreachable!("main sets the definition of the command line first")
}
