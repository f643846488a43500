//! Entry points of the fuzz targets, which take files with arbitrary bytes.

use std::path::Path;

/// Opens and plays a recording as `gpumon replay` does.
pub fn replay(recording: &Path) {
    crate::top::fuzzing::replay(recording);
}

/// Parses a settings file as every command does, and formats its mistakes.
///
/// # Panics
/// Panics if a mistake has an empty message.
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

/// Reads a notebook with the code of `gpumon notebook report`, and writes both reports.
pub fn notebook(file: &Path) {
    crate::commands::notebook::fuzz(file);
}

/// Reads earlier results as `gpumon bench --compare` does, and compares new results with them.
pub fn compare(earlier: &Path) {
    crate::commands::bench::fuzzing::compare(earlier);
}
