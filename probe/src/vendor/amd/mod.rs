//! Reading of AMD GPUs through the files of the kernel drivers `amdgpu` and KFD.
//!
//! `ROCm` is not needed: all data comes from sysfs and procfs. Nothing in this module opens
//! `/dev/dri`, because that would wake a sleeping card.

// Numbers from the driver can have any value, so arithmetic must not overflow.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod board;
mod broken_tables;
mod check;
mod compute;
mod device;
mod energy;
mod errors;
mod fatal;
pub(super) mod fuzzing;
mod kfd;
mod metrics;
mod partitions;
mod processes;
mod ras;
mod rates;
mod recording;
mod source;
#[cfg(test)]
mod tests;
mod throttle;

pub use self::source::AmdSource;
pub(super) use self::{
    check::{BINDING, check_card, check_topology, find_cards},
    errors::{ERRORS, log_parser},
    recording::{record_card, record_driver},
};
