//! Reading of Intel GPUs through the files of the kernel drivers `i915` and `xe`.
//!
//! With both drivers, almost every reading wakes a sleeping card, so the power state is checked
//! first.

// Numbers from the driver can have any value, so arithmetic must not overflow.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod device;
mod diagnostics;
mod errors;
mod source;
#[cfg(test)]
mod tests;

pub use source::IntelSource;

pub(super) use diagnostics::{BINDING, check_card, copy_card_files, find_cards};
pub(super) use errors::{ERRORS, log_parser};
