//! Whether the kernel's log can be read, where the driver writes errors that it reports nowhere else.

use std::fs;

use super::{finding::Finding, machine::Machine};

pub(super) fn check(machine: &Machine) -> Vec<Finding> {
    vec![match fs::File::open(machine.path("/dev/kmsg")) {
        Ok(_) => Finding::ok("kernel log", "readable, so that every Xid is seen"),
        Err(error) => Finding::note(
            "kernel log",
            format!(
                "/dev/kmsg cannot be read ({error}), so that Xids which NVML does not report (79, 119, 120) are missed"
            ),
        )
        .with_cure("run gpumon as root or with CAP_SYSLOG, or set kernel.dmesg_restrict to 0"),
    }]
}
