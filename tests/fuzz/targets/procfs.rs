//! Fuzzes the parsers of files in `/proc/PID`: `stat`, `status`, `comm`, `cmdline`, `environ` and
//! `cgroup`, separated by lines of `====`.

#![no_main]

use std::{fs, path::PathBuf, sync::LazyLock};

use gpumon_probe::owner::fuzzing;
use libfuzzer_sys::fuzz_target;

const PID: u32 = 42;

/// A `/proc` folder with a process, its parent, and the boot time of the machine. The parent has no
/// command line.
static PROC: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = gpumon_fuzz::make_scratch_folder("procfs");
    fs::create_dir_all(root.join("42")).expect("a process");
    fs::create_dir_all(root.join("7")).expect("its parent");
    fs::write(root.join("stat"), "cpu 1 2 3\nbtime 1700000000\n").expect("a machine");
    fs::write(
        root.join("7/stat"),
        "7 (sh) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0",
    )
    .expect("its parent's file");
    root
});

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    for name in ["stat", "status", "comm", "cmdline", "environ", "cgroup"] {
        let divider = b"\n====\n";
        let end = rest
            .windows(divider.len())
            .position(|window| window == divider);
        let (file, behind) = end.map_or((rest, &[][..]), |end| {
            (&rest[..end], &rest[end + divider.len()..])
        });
        fs::write(PROC.join("42").join(name), file).expect("a file in memory");
        rest = behind;
    }
    fuzzing::owner(&PROC, PID);
});
