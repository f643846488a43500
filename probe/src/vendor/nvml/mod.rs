//! Reading of NVIDIA GPUs through NVML.
//!
//! The library is loaded at run time, so that gpumon can start without it and explain what is
//! missing. The library is opened once per process and never closed: closing takes milliseconds and
//! can hang with the driver, and the end of the process releases it anyway.

// Numbers from the driver can have any value, so arithmetic must not overflow.
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

pub(super) use self::backend::{Backend, GpmResult};
pub use self::{
    backend::{FUNCTIONS, NvmlBackend},
    lanes::shared_queries,
    recorded::RecordedAnswers,
    source::NvmlSource,
};
