//! Answers of a node of a fleet; the first byte chooses the route.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| gpumon_server::fuzzing::node_answer(bytes));
