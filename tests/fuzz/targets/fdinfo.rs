//! Fuzzes the parser of `/proc/PID/fdinfo/FD` for an open card.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    gpumon_probe::vendor::fuzzing::fdinfo(text);
});
