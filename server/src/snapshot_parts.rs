//! The parts of a snapshot.

use gpumon_history::wanted::Wanted;

use crate::view::View;

pub(crate) struct SnapshotParts {
    pub(crate) history_ms: Option<u64>,
    pub(crate) wanted: Wanted,
    pub(crate) brief: bool,
    pub(crate) view: View,
}

impl Default for SnapshotParts {
    fn default() -> Self {
        Self {
            history_ms: None,
            wanted: Wanted::of_gpus(),
            brief: false,
            view: View::Whole,
        }
    }
}
