//! AMD's GPUs, through the files of the kernel's drivers `amdgpu` and KFD.
//!
//! Neither `ROCm` nor a call into a driver is needed: everything is in sysfs and procfs. Nothing
//! here opens `/dev/dri`, which would wake a sleeping card.

// The driver's numbers can be anything.
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
