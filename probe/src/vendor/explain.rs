//! Explanations of what the vendors' drivers report, for code that knows no vendor.

use std::{io, ops::Range, path::Path};

use super::{ErrorInfo, amd, intel, kernel_log, nvml};
use crate::{model::Vendor, surroundings::Surroundings};

pub use nvml::return_code::{Explanation, explain_absence};

/// A folder in sysfs for each vendor's kernel driver, with a link to each of its GPUs.
pub const KERNEL_DRIVERS: [&str; 4] = [
    "/sys/bus/pci/drivers/nvidia",
    "/sys/bus/pci/drivers/amdgpu",
    "/sys/bus/pci/drivers/i915",
    "/sys/bus/pci/drivers/xe",
];

/// Returns the codes that [`describe_error`] explains: NVIDIA's, and gpumon's for others.
pub fn error_codes() -> [Range<u32>; 3] {
    [1..1000, amd::ERRORS.codes(), intel::ERRORS.codes()]
}

/// Explains an error code of a driver. NVIDIA's codes are Xids; those of others are gpumon's own.
pub fn describe_error(code: u32) -> ErrorInfo {
    let tables = [&amd::ERRORS, &intel::ERRORS];
    let known = tables.iter().find_map(|table| table.describe(code));
    known.unwrap_or_else(|| nvml::xid::describe(code))
}

/// Returns the advice for resetting a GPU, as a clause.
pub fn reset_advice(vendor: Vendor, surroundings: Surroundings) -> &'static str {
    match vendor {
        Vendor::Nvidia => {
            nvml::return_code::explain(nvml::query::Code::RESET_REQUIRED.0, surroundings).cure
        }
        Vendor::Amd | Vendor::Intel => "reboot the machine if it stays so",
    }
}

/// Returns the advice for finding a driver's messages, as a clause.
pub fn log_advice(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Nvidia => "see `dmesg | grep -i nvrm`",
        Vendor::Amd => "see `dmesg | grep amdgpu`",
        Vendor::Intel => "see `dmesg | grep -e i915 -e xe`",
    }
}

/// Returns the options of a container that give it the device files of a vendor's GPUs. NVIDIA's
/// container tools select the files themselves.
pub fn container_devices(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Amd => "--device /dev/kfd --device /dev/dri",
        Vendor::Nvidia | Vendor::Intel => "--device /dev/dri",
    }
}

/// Returns the advice for a library of another version than the kernel's driver, as a clause.
pub fn version_mismatch_advice(surroundings: Surroundings) -> &'static str {
    nvml::return_code::explain(nvml::query::Code::VERSION_MISMATCH.0, surroundings).cure
}

/// Checks that the kernel's log can be read.
///
/// # Errors
/// The system does not allow it.
pub fn check_kernel_log(path: &Path) -> io::Result<()> {
    kernel_log::open_at_end(path).map(drop)
}

/// Returns the messages of the drivers in the kernel's log, with their times in microseconds since
/// the start of the kernel.
///
/// # Errors
/// The log cannot be read.
pub fn kernel_messages(path: &Path) -> io::Result<Vec<String>> {
    kernel_log::messages(path)
}
