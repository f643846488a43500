//! Fuzzes the parsers of answers from a node of a fleet. The first byte selects the route.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| gpumon_server::fuzzing::parse_node_response(bytes));
