//! Explanations of driver errors, and vendor-specific advice.

use std::{io, ops::Range, path::Path};

use super::{ErrorInfo, amd, intel, kernel_log, nvml};
use crate::{model::Vendor, surroundings::Surroundings};

pub use nvml::return_code::{Explanation, explain_absence};

/// The kernel drivers' sysfs folders. Each contains a link to every GPU that the driver uses.
pub const KERNEL_DRIVERS: [&str; 4] = [
    "/sys/bus/pci/drivers/nvidia",
    "/sys/bus/pci/drivers/amdgpu",
    "/sys/bus/pci/drivers/i915",
    "/sys/bus/pci/drivers/xe",
];

/// Returns the ranges of error codes that [`describe_error`] explains: NVIDIA's Xids, and gpumon's
/// own codes for AMD and Intel.
pub fn error_codes() -> [Range<u32>; 3] {
    [1..1000, amd::ERRORS.codes(), intel::ERRORS.codes()]
}

/// Explains an error code. NVIDIA's codes are Xids. gpumon defines the codes for AMD and Intel.
pub fn describe_error(code: u32) -> ErrorInfo {
    let tables = [&amd::ERRORS, &intel::ERRORS];
    let known = tables.iter().find_map(|table| table.describe(code));
    known.unwrap_or_else(|| nvml::xid::describe_xid(code))
}

/// Returns advice on how to reset a GPU, as a clause.
pub fn reset_advice(vendor: Vendor, surroundings: Surroundings) -> &'static str {
    match vendor {
        Vendor::Nvidia => {
            nvml::return_code::explain(nvml::query::Code::RESET_REQUIRED.0, surroundings).cure
        }
        Vendor::Amd | Vendor::Intel => "reboot the machine if this persists",
    }
}

/// Returns advice on how to find the driver's log messages, as a clause.
pub fn log_advice(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Nvidia => "see `dmesg | grep -i nvrm`",
        Vendor::Amd => "see `dmesg | grep amdgpu`",
        Vendor::Intel => "see `dmesg | grep -e i915 -e xe`",
    }
}

/// Returns the `docker run` options that give a container access to a vendor's GPUs. NVIDIA's
/// container tools add the device files themselves.
pub fn container_device_options(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Amd => "--device /dev/kfd --device /dev/dri",
        Vendor::Nvidia | Vendor::Intel => "--device /dev/dri",
    }
}

/// Returns advice for a version mismatch between the library and the kernel driver, as a clause.
pub fn version_mismatch_advice(surroundings: Surroundings) -> &'static str {
    nvml::return_code::explain(nvml::query::Code::VERSION_MISMATCH.0, surroundings).cure
}

/// Checks that the kernel log can be opened.
///
/// # Errors
/// Returns an error if the system does not allow reading the log.
pub fn check_kernel_log(path: &Path) -> io::Result<()> {
    kernel_log::open_at_end(path).map(drop)
}

/// Returns the GPU drivers' messages in the kernel log. Each starts with its time in microseconds
/// since boot.
///
/// # Errors
/// Returns an error if the log cannot be read.
pub fn read_kernel_messages(path: &Path) -> io::Result<Vec<String>> {
    kernel_log::read_driver_messages(path)
}
