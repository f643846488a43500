//! Fuzzes the parser of the kubelet's list of pods and their devices.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|answer: &[u8]| gpumon_server::fuzzing::parse_kubelet_response(answer));
