//! Fuzzes the parser of web configurations.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| gpumon_server::fuzzing::parse_web_config(text));
