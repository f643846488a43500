//! Fuzzes the parser of `/proc/PID/cgroup`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    gpumon_probe::owner::fuzzing::cgroup(text);
});
