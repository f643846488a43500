//! Reading of AMD GPUs through the files of the kernel drivers `amdgpu` and KFD.
//!
//! `ROCm` is not needed: all data comes from sysfs and procfs. Nothing in this module opens
//! `/dev/dri`, because that would wake a sleeping card.

// Numbers from the driver can have any value, so arithmetic must not overflow.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod board;
mod counters;
mod device;
mod diagnostics;
mod errors;
mod kfd;
mod metrics;
mod partitions;
mod processes;
mod source;
#[cfg(test)]
mod tests;

pub use source::AmdSource;

pub(super) use diagnostics::{
    BINDING, check_card, check_topology, copy_card_files, copy_driver_files, find_cards,
};
pub(super) use errors::{ERRORS, log_parser};

/// Entry points for fuzzing the parsers of AMD's files.
pub(super) mod fuzzing {
    use std::path::PathBuf;

    use super::{
        counters,
        kfd::KfdNode,
        metrics::{Field, Metrics},
        processes,
    };
    use crate::vendor::drm::Names;

    /// Decodes an AMD `gpu_metrics` table and reads all of its fields.
    pub fn gpu_metrics(bytes: &[u8]) {
        let Ok(metrics) = Metrics::decode(bytes) else {
            return;
        };
        metrics.get(Field::SocketPower);
        metrics.get_all(Field::XgmiRead);
        let shares = counters::ThrottleShares::from_tables(&metrics, &metrics);
        counters::find_throttle_reasons(&metrics, shares.as_ref(), Some(1.0));
        for partition in 0..metrics.partition_block_count() {
            metrics.get_partition(partition, Field::DieActivity);
        }
    }

    /// Parses a node's properties in KFD's topology.
    pub fn kfd_node(text: &str) {
        let node = KfdNode::parse(1, 1, text, PathBuf::new());
        node.bus_id();
        node.partition_number();
        node.compute_units();
        node.compiler_target();
        node.render_minor();
    }

    pub(crate) fn names() -> &'static Names {
        &processes::NAMES
    }
}
