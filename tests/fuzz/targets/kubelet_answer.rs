//! What the kubelet answers to the question which pods hold which devices.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|answer: &[u8]| gpumon_server::fuzzing::kubelet_answer(answer));
