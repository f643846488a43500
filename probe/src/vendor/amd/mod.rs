//! Reading of AMD GPUs through the files of the kernel drivers `amdgpu` and KFD.
//!
//! `ROCm` is not needed: all data comes from sysfs and procfs. Nothing in this module opens
//! `/dev/dri`, because that would wake a sleeping card.

// Numbers from the driver can have any value, so arithmetic must not overflow.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod board;
mod counters;
mod device;
mod diagnostics;
mod errors;
pub(super) mod fuzzing;
mod kfd;
mod metrics;
mod partitions;
mod processes;
mod source;
#[cfg(test)]
mod tests;

pub(super) use self::errors::{ERRORS, log_parser};
pub use self::source::AmdSource;
pub(super) use diagnostics::{
    BINDING, check_card, check_topology, find_cards, record_card, record_driver,
};
