//! Fuzzes the parser of a collector's records.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &str| gpumon_server::fuzzing::decode_record(line));
