//! A line of a collector.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &str| gpumon_server::fuzzing::record(line));
