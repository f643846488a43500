//! What is generated from this crate: [`commands`], a page of `docs/reference/`.

mod commands;

use std::{env, fs, path::Path};

/// Compares a committed page with what the code generates, or writes it where `GPUMON_UPDATE_TYPES` is set.
#[track_caller]
fn check(name: &str, page: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference").join(name);
    if env::var_os("GPUMON_UPDATE_TYPES").is_some() {
        fs::write(&file, page).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == page, "docs/reference/{name} is out of date: run `make types`");
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace("\n\n", "<br>").replace('\n', " ")
}
