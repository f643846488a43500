//! The parts of a snapshot.

use gpumon_history::wanted::MetricSelection;

use crate::view::View;

pub(crate) struct SnapshotParts {
    pub(crate) history_ms: Option<u64>,
    pub(crate) wanted: MetricSelection,
    pub(crate) brief: bool,
    pub(crate) view: View,
}

impl Default for SnapshotParts {
    fn default() -> Self {
        Self {
            history_ms: None,
            wanted: MetricSelection::select_gpu_charts(),
            brief: false,
            view: View::Whole,
        }
    }
}
