//! Messages of the kernel.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    gpumon_probe::vendor::fuzzing::kernel_log(text);
});
