//! Reading of NVIDIA GPUs through NVML.
//!
//! The library is loaded at run time, so that gpumon can start without it and explain what is
//! missing. The library is opened once per process and never closed: closing takes milliseconds and
//! can hang with the driver, and the end of the process releases it anyway.

// Numbers from the driver can have any value, so arithmetic must not overflow.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod backend;
mod device;
pub mod error;
mod gpm;
mod link_rates;
mod mig;
mod processes;
mod querier;
pub mod query;
mod recorded;
pub(super) mod schedule;
mod source;
mod sysfs;
mod to_model;
mod topology;
mod traces;
pub mod xid;

pub use backend::{FUNCTIONS, NvmlBackend};
pub use recorded::RecordedAnswers;
pub use schedule::shared_queries_with_costs;
pub use source::NvmlSource;

pub(super) use backend::{Backend, GpmResult};
