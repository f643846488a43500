//! The memory of devices that do not exist: one budget for each, shared by all processes that use it.
//!
//! `GPUMON_FAKE_MEMORY_BOOK` names a folder. In it each process has a file with what it holds of which device; the fake
//! CUDA driver writes it, and the fake NVML reads all of them. What a process held is free as soon as it is gone, as with
//! a real driver. Without the folder a process is alone with its devices.
//!
//! - [`Account`] is what one process holds, within the budget of all.
//! - [`holders`] says who holds a device.

mod account;
mod entry;

use std::{env, path::PathBuf};

pub use self::{
    account::Account,
    entry::{Holder, holders},
};

/// Names the folder.
pub const VARIABLE: &str = "GPUMON_FAKE_MEMORY_BOOK";

/// The folder that the environment names.
pub fn folder() -> Option<PathBuf> {
    env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}
