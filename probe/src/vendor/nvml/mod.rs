//! NVIDIA GPUs, read through NVML.
//!
//! The library is loaded at run time, so that gpumon also starts without it and can explain what is
//! missing. A process opens the library once and never closes it: closing takes milliseconds and
//! can hang with the driver, and the process ends soon anyway.

// Numbers from the driver can have any value, so that arithmetic must not overflow.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod backend;
mod cached;
mod devfreq;
mod device;
mod error;
mod events;
mod gpm;
pub(super) mod lanes;
mod link_rates;
mod mig;
mod need;
mod paced;
mod pcie;
mod processes;
mod querier;
pub mod query;
mod recorded;
pub mod return_code;
mod runtime_pm;
mod shares;
mod source;
mod start;
mod to_model;
mod topology;
mod traces;
mod turn;
pub mod xid;
mod xid_log;

pub(super) use self::backend::{Activity, Backend};
pub use self::{
    backend::{FUNCTIONS, NvmlBackend},
    lanes::shared_queries,
    recorded::Recorded,
    source::NvmlSource,
};
