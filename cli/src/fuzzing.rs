//! Entry points for fuzz targets. Each function takes a file with arbitrary content.

use std::path::Path;

/// Opens and plays a recording as `gpumon replay` does.
pub fn replay(recording: &Path) {
    crate::top::fuzzing::fuzz_replay(recording);
}

/// Parses a settings file as every command does, and formats its mistakes.
///
/// # Panics
/// Panics if a mistake has an empty message.
pub fn parse_settings(file: &Path) {
    for (_, parsed) in crate::config::read_and_parse_files(Some(file)).0 {
        assert!(
            parsed
                .mistakes
                .iter()
                .all(|mistake| !mistake.error.to_string().is_empty())
        );
    }
}

/// Reads a notebook with the code of `gpumon notebook report`, and writes both reports.
pub fn report_notebook(file: &Path) {
    crate::commands::notebook::read_and_format(file);
}

/// Reads earlier results as `gpumon bench --compare` does, and compares a fixed outcome with them.
pub fn compare(earlier: &Path) {
    crate::commands::bench::fuzzing::compare_with_file(earlier);
}
