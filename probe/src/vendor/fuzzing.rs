//! Entry points for fuzzing the parsers of files that drivers and processes write.

use std::time::{Duration, Instant};

use super::{
    amd,
    drm::{Client, ClientInfo, Usage},
    intel,
    kernel_log::LogParser,
};

/// Decodes an AMD GPU's table of metrics, and reads all of its fields.
pub fn gpu_metrics(bytes: &[u8]) {
    amd::fuzzing::gpu_metrics(bytes);
}

/// Parses the use of a card by a process, once a second. Parts between NUL characters are scans.
pub fn fdinfo(text: &str) {
    let mut usage = Usage::new(amd::fuzzing::names());
    let start = Instant::now();
    for (seconds, part) in (0..1000).zip(text.split('\0')) {
        let Some(info) = ClientInfo::parse(part) else {
            continue;
        };
        info.bytes_in("");
        let (pid, minor) = (1, 128);
        let client = Client { pid, minor, info };
        usage.update(start + Duration::from_secs(seconds), &[&client]);
        usage.processes(&[&client], true);
    }
}

/// Parses the properties of a node of KFD's topology.
pub fn kfd_node(text: &str) {
    amd::fuzzing::kfd_node(text);
}

/// Parses messages of the kernel for errors of AMD's and Intel's drivers.
pub fn kernel_log(text: &str) {
    let parsers: [Box<dyn LogParser>; 2] = [amd::log_parser(), intel::log_parser()];
    for mut parser in parsers {
        for line in text.lines() {
            parser.parse(line);
        }
    }
}
