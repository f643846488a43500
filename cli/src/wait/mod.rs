//! The modules of `gpumon wait`.
//!
//! - [`condition`] defines the conditions for which the command waits.
//! - [`reader`] reads the GPUs through a running server or a separate collector, so that this
//!   process never calls the driver. [`candidate`] contains the state of each device and the
//!   selection of devices.
//! - [`lock`] prevents two waiting processes from taking the same device, and hands devices over to
//!   the command or prints them.
//! - [`search`] combines the other modules, and reports progress.

mod candidate;
mod condition;
mod lock;
mod reader;
mod search;

pub(crate) use self::{
    candidate::DeviceSelection,
    condition::{Conditions, WantedMemory},
    lock::{
        ACCEPTED_HOLD_TIMES, DeviceFormat, Locks, check_command_exists, make_start_failure,
        print_devices, run_command,
    },
    reader::Reader,
    search::{Patience, Progress, Search, wait_and_lock_devices},
};
