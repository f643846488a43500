//! Entry points for fuzzing the parsers of driver and process files.

use std::time::{Duration, Instant};

use super::{
    amd,
    drm::{Client, ClientInfo, Usage},
    intel,
    kernel_log::LogParser,
};

pub use super::amd::fuzzing::{gpu_metrics, kfd_node};

/// Parses a process's `fdinfo` in repeated scans, one second apart. NUL characters separate the
/// scans.
pub fn fdinfo(text: &str) {
    let mut usage = Usage::new(amd::fuzzing::names());
    let start = Instant::now();
    for (seconds, part) in (0..1000).zip(text.split('\0')) {
        let Some(info) = ClientInfo::parse(part) else {
            continue;
        };
        info.sum_memory("");
        let (pid, minor) = (1, 128);
        let client = Client { pid, minor, info };
        usage.update(start + Duration::from_secs(seconds), &[&client]);
        usage.list_processes(&[&client], true);
    }
}

/// Parses kernel log messages for errors of the AMD and Intel drivers.
pub fn kernel_log(text: &str) {
    let parsers: [Box<dyn LogParser>; 2] = [amd::log_parser(), intel::log_parser()];
    for mut parser in parsers {
        for line in text.lines() {
            parser.parse(line);
        }
    }
}
