//! Entry points for fuzzing the parsers of AMD's files.

use std::path::PathBuf;

use super::{
    counters,
    kfd::KfdNode,
    metrics::{Field, Metrics},
    processes,
};
use crate::vendor::drm::Names;

pub(in crate::vendor) fn gpu_metrics(bytes: &[u8]) {
    let Ok(metrics) = Metrics::decode(bytes) else {
        return;
    };
    metrics.get(Field::SocketPower);
    metrics.get_all(Field::XgmiRead);
    let shares = counters::ThrottleShares::from_tables(&metrics, &metrics);
    counters::find_reasons(&metrics, shares.as_ref(), Some(1.0));
    for partition in 0..metrics.partition_block_count() {
        metrics.get_partition(partition, Field::DieActivity);
    }
}

pub(in crate::vendor) fn kfd_node(text: &str) {
    let node = KfdNode::parse(1, 1, text, PathBuf::new());
    node.bus_id();
    node.partition_number();
    node.compute_units();
    node.compiler_target();
    node.render_minor();
}

pub(in crate::vendor) fn names() -> &'static Names {
    &processes::NAMES
}
