//! What processes hold of devices that do not exist, and what they do on them.
//!
//! `GPUMON_FAKE_GPU_STATE` names a folder. In it each process has a file for what it holds, and one
//! for each device that it has done something on; the fake CUDA driver writes them, and the fake
//! NVML reads all of them. What a process held is free as soon as it is gone, as with a real
//! driver; what it did stays done. Without the folder a process is alone with its devices, and
//! nobody knows what it does.
//!
//! - [`Account`] is what one process holds, within the budget of all. [`holders`] says who holds a
//!   device.
//! - [`ActivityWriter`] is what one process does. [`uses`] says what all have done on a device
//!   until now.

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
    activity_writer::{ActivityWriter, Begun},
    entry::{Holder, holders},
    uses::{Uses, uses},
};

/// Names the folder.
pub const VARIABLE: &str = "GPUMON_FAKE_GPU_STATE";

/// The folder that the environment names.
pub fn folder() -> Option<PathBuf> {
    env::var_os(VARIABLE)
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
}

/// A clock that all processes of this machine share and nobody sets, in ns.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec as u32).as_nanos() as u64
}
