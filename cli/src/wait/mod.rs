//! The parts of `gpumon wait`.
//!
//! - [`condition`] defines the conditions to wait for.
//! - [`reader`] reads the GPUs through a running server or its own collector, so that this process
//!   never calls the driver. [`candidate`] contains the state of each device and the selection of
//!   devices.
//! - [`lock`] prevents two waiting processes from taking the same device.
//! - [`search`] combines these, [`progress`] reports progress, and [`hand_over`] hands the devices
//!   over.

mod candidate;
mod condition;
mod hand_over;
mod lock;
mod progress;
mod reader;
mod search;

pub(crate) use self::{
    candidate::Choice,
    condition::{Conditions, WantedMemory},
    hand_over::{Format, check, hand_over, not_started, run},
    lock::{HOLD, Locks},
    progress::Progress,
    reader::Reader,
    search::{Patience, Search, find},
};
