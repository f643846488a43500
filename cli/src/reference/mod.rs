//! Generators of the reference pages in `docs/reference/`: [`commands`] and [`settings`].

mod commands;
mod settings;

use std::{env, fs, path::Path};

/// Compares a committed page with the generated page. If `GPUMON_UPDATE_TYPES` is set, writes the
/// generated page instead.
#[track_caller]
fn check_page(name: &str, page: &str) {
    compare_file(
        &Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../docs/reference")
            .join(name),
        page,
    );
}

#[track_caller]
fn compare_file(file: &Path, text: &str) {
    if env::var_os("GPUMON_UPDATE_TYPES").is_some() {
        fs::write(file, text).unwrap();
    }
    let committed = fs::read_to_string(file).unwrap_or_default();
    assert!(
        committed == text,
        "{} is out of date: run `make types`",
        file.display()
    );
}

fn format_cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace("\n\n", "<br>")
        .replace('\n', " ")
}
