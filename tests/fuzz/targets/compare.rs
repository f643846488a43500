//! Fuzzes the parser of earlier results for `gpumon bench --compare`.

#![no_main]

use std::{fs, path::PathBuf, sync::LazyLock};

use libfuzzer_sys::fuzz_target;

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| gpumon_fuzz::make_scratch_folder("compare").join("earlier.json"));

fuzz_target!(|bytes: &[u8]| {
    fs::write(&*FILE, bytes).expect("a file in memory");
    gpumon_cli::fuzzing::compare(&FILE);
});
