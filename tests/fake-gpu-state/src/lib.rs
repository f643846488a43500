//! The shared state of simulated devices: memory that processes have taken, and their activity.
//!
//! The environment variable `GPUMON_FAKE_GPU_STATE` names a folder. Each process has a file there
//! for its memory, and a file for its activity on each device. The fake CUDA driver writes these
//! files, and the fake NVML reads all of them. As with a real driver, memory is freed when its
//! process ends, but its activity remains counted. Without the folder, a process has the devices
//! for itself, and its activity is not recorded.
//!
//! - [`Account`] is the memory of one process, within the budget of all processes. A [`Holder`] is
//!   a process that has taken memory of a device.
//! - [`ActivityWriter`] records the activity of one process on devices, which other processes can
//!   read.

mod account;
mod activity;
mod activity_file;
mod activity_writer;
mod entry;
mod uses;

use std::{env, path::PathBuf, time::Duration};

use rustix::time::{ClockId, clock_gettime};

pub use self::{
    account::Account,
    activity::{Activity, Load, Peaks},
    activity_writer::{ActivityWriter, RunningWork},
    entry::{Holder, list_holders},
    uses::{DeviceActivity, read_activity},
};

/// The environment variable with the folder.
pub const STATE_VARIABLE: &str = "GPUMON_FAKE_GPU_STATE";

/// Returns the folder in the environment variable, if there is one.
pub fn find_folder() -> Option<PathBuf> {
    env::var_os(STATE_VARIABLE)
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
}

/// Returns the time of a monotonic clock that is the same for all processes of this machine, in
/// nanoseconds.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec as u32).as_nanos() as u64
}
