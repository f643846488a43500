//! What fuzzing feeds with bytes from strangers' files.

use std::path::Path;

/// Opens a recording as `gpumon replay` does, and plays it.
pub fn replay(recording: &Path) {
    crate::top::fuzzing::replay(recording);
}

/// Reads earlier results as `gpumon bench --compare` does, and holds a new one against them.
pub fn compare(earlier: &Path) {
    crate::commands::bench::fuzzing::compare(earlier);
}
