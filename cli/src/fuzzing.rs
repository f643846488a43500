//! What fuzzing feeds with bytes from strangers' files.

use std::path::Path;

/// Opens a recording as `gpumon replay` does, and plays it.
pub fn replay(recording: &Path) {
    crate::top::fuzzing::replay(recording);
}

/// Reads a settings file as every command does, and tells what is wrong with it.
///
/// # Panics
/// Where a mistake has no words.
pub fn settings(file: &Path) {
    for (_, parsed) in crate::config::read(Some(file)).0 {
        assert!(
            parsed
                .mistakes
                .iter()
                .all(|mistake| !mistake.error.to_string().is_empty())
        );
    }
}

/// Reads a notebook as `gpumon notebook report` does, and writes both reports.
pub fn notebook(file: &Path) {
    crate::commands::notebook::fuzz(file);
}

/// Reads earlier results as `gpumon bench --compare` does, and holds a new one against them.
pub fn compare(earlier: &Path) {
    crate::commands::bench::fuzzing::compare(earlier);
}
