//! The modules of `gpumon wait`.
//!
//! - [`condition`] defines the conditions for which the command waits.
//! - [`reader`] reads the GPUs through a running server or a separate collector, so that this
//!   process never calls the driver. [`candidate`] contains the state of each device and the
//!   selection of devices.
//! - [`lock`] prevents two waiting processes from taking the same device.
//! - [`search`] combines the other modules, [`progress`] reports progress, and [`hand_over`] hands
//!   the devices over.

mod candidate;
mod condition;
mod lock;
mod reader;
mod search;

pub(crate) use self::{
    candidate::DeviceSelection,
    condition::{Conditions, WantedMemory},
    lock::{ACCEPTED_HOLD_TIMES, Locks},
    reader::Reader,
    search::{Patience, Search, find_devices},
};
pub(crate) use lock::{Format, check_command, make_start_failure, print_devices, run_command};
pub(crate) use search::Progress;
