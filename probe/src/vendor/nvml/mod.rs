//! NVIDIA's driver, through NVML.
//!
//! The library is opened at run time, so that gpumon runs (and explains itself) where there is
//! none. A process opens it once and never closes it: closing takes milliseconds, can hang with the
//! driver, and the process ends soon anyway.

// The driver's numbers can be anything.
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
