//! Entry points for fuzzing the parsers of files that drivers and processes write.

use super::{amd, drm::ClientInfo};

/// Decodes an AMD GPU's table of metrics, and reads all of its fields.
pub fn gpu_metrics(bytes: &[u8]) {
    amd::fuzzing::gpu_metrics(bytes);
}

/// Parses the use of a card by a process.
pub fn fdinfo(text: &str) {
    if let Some(client) = ClientInfo::parse(text) {
        client.bytes_in("");
    }
}

/// Parses the properties of a node of KFD's topology.
pub fn kfd_node(text: &str) {
    amd::fuzzing::kfd_node(text);
}

/// Parses messages of the kernel for errors of AMD's driver.
pub fn kernel_log(text: &str) {
    amd::fuzzing::kernel_log(text);
}
