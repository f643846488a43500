//! Fuzzes the parser of notebooks in `gpumon notebook report`.

#![no_main]

use std::{fs, path::PathBuf, sync::LazyLock};

use libfuzzer_sys::fuzz_target;

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| gpumon_fuzz::make_scratch_folder("notebook").join("train.ipynb"));

fuzz_target!(|bytes: &[u8]| {
    fs::write(&*FILE, bytes).expect("a file in memory");
    gpumon_cli::fuzzing::report_notebook(&FILE);
});
