//! Fuzzes the parser of a Jupyter kernel's connection file. The path of this file is in the command
//! line of the kernel.

#![no_main]

use std::{fs, path::PathBuf, sync::LazyLock};

use gpumon_probe::owner::fuzzing;
use libfuzzer_sys::fuzz_target;

const PID: u32 = 42;

/// The `/proc` of a kernel whose connection file is found below the kernel's own root directory.
static PROC: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = gpumon_fuzz::make_scratch_folder("connection-file");
    fs::create_dir_all(root.join("42/root/run")).expect("a process");
    fs::write(root.join("stat"), "btime 1700000000\n").expect("a machine");
    for (name, text) in [
        (
            "stat",
            "42 (python3) S 1 42 42 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0",
        ),
        ("comm", "python3\n"),
        (
            "cmdline",
            "python3\0-m\0ipykernel_launcher\0-f\0/run/kernel-1b2c.json\0",
        ),
    ] {
        fs::write(root.join("42").join(name), text).expect("a file of it");
    }
    root
});

fuzz_target!(|bytes: &[u8]| {
    fs::write(PROC.join("42/root/run/kernel-1b2c.json"), bytes).expect("a file in memory");
    let owner = fuzzing::owner(&PROC, PID).expect("a process");
    assert_eq!(owner.notebook.expect("a kernel").kernel_id, "1b2c");
});
