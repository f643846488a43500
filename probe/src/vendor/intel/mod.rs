//! Intel's GPUs, through the files of the kernel's drivers `i915` and `xe`.
//!
//! Both drivers wake a sleeping card for nearly every reading, so its state is read first.

// The driver's numbers can be anything.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod check;
mod device;
mod errors;
mod recording;
mod source;
#[cfg(test)]
mod tests;

pub use self::source::IntelSource;

pub(super) use self::{
    check::{BINDING, check_card, find_cards},
    errors::{ERRORS, log_parser},
    recording::record_card,
};
