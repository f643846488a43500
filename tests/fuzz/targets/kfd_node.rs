//! Fuzzes the parser of a node's properties in KFD's topology.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    gpumon_probe::vendor::fuzzing::kfd_node(text);
});
