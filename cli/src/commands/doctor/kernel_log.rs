//! Whether the kernel's log can be read, where the driver writes errors that it reports nowhere else.

use gpumon_probe::vendor::{KERNEL_LOG, nvml::kernel_log::KernelLog};

use super::{finding::Finding, machine::Machine};

pub(super) fn check(machine: &Machine) -> Vec<Finding> {
    vec![match KernelLog::open(&machine.path(KERNEL_LOG)) {
        Ok(_) => Finding::ok("kernel log", "readable, so that every Xid is seen"),
        Err(error) => Finding::note(
            "kernel log",
            format!(
                "{KERNEL_LOG} cannot be read ({error}), so that Xids which NVML does not report (79, 119, 120) are missed"
            ),
        )
        .with_cure("run gpumon as root or with CAP_SYSLOG, or set kernel.dmesg_restrict to 0"),
    }]
}
