//! A test that the database's reference page is up to date.

use std::{env, fs, path::Path};

#[test]
fn reference_page_matches_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/history.md");
    let generated = gpumon_history::database::render_reference();
    if env::var_os("GPUMON_UPDATE_TYPES").is_some() {
        fs::write(&path, generated).unwrap();
    } else {
        let is_same = fs::read_to_string(&path).is_ok_and(|committed| committed == generated);
        assert!(
            is_same,
            "docs/reference/history.md is out of date: run `make types`"
        );
    }
}
