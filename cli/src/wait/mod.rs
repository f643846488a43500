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
mod hand_over;
mod lock;
mod progress;
mod reader;
mod search;

pub(crate) use self::{
    candidate::DeviceSelection,
    condition::{Conditions, WantedMemory},
    hand_over::{Format, check_command, make_start_failure, print_devices, run_command},
    lock::{ACCEPTED_HOLD_TIMES, Locks},
    progress::Progress,
    reader::Reader,
    search::{Patience, Search, find_devices},
};
