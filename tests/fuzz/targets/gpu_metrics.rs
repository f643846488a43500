//! Fuzzes the parser of an AMD GPU's table of metrics.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    gpumon_probe::vendor::fuzzing::gpu_metrics(bytes);
});
