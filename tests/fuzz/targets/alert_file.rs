//! Fuzzes the parser of alert files.

#![no_main]

use gpumon_alerts::rules::AlertRules;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match AlertRules::from_toml(text, "fuzz.toml") {
        // Valid rules must support all operations.
        Ok(rules) => {
            gpumon_alerts::prometheus::export(&rules);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
