//! Intel's GPUs, through the files of the kernel's drivers `i915` and `xe`.
//!
//! Both drivers wake a sleeping card for nearly every reading, so its state is read first.

// The driver's numbers can be anything.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod device;
mod errors;
mod source;
#[cfg(test)]
mod tests;

pub(super) use self::errors::ERRORS;
pub use self::source::IntelSource;

/// Returns the parser of the drivers' messages, for fuzzing.
pub(super) fn log_parser() -> Box<dyn super::kernel_log::LogParser> {
    Box::new(errors::IntelErrors)
}
