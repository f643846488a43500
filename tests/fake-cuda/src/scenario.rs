//! The configuration of devices and faults.

use std::{env, fs, path::PathBuf};

use serde::Deserialize;

/// The environment variable with the path of the scenario.
const SCENARIO_VARIABLE: &str = "GPUMON_FAKE_CUDA_SCENARIO";

/// The contents of a scenario file. `example.toml` describes every key.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Scenario {
    pub(crate) devices: u32,
    pub(crate) name: String,
    pub(crate) memory_mib: u64,
    pub(crate) uuids: Vec<String>,
    pub(crate) version: i32,
    pub(crate) capability: [i32; 2],
    pub(crate) stub: bool,
    pub(crate) kernel_ms: u64,
    pub(crate) slowdown: u32,
    pub(crate) queued_us: u64,
    pub(crate) multiprocessors: u32,
    pub(crate) sm_mhz: u32,
    pub(crate) memory_bus_bits: u32,
    pub(crate) saturates: bool,
    pub(crate) counters: Option<PathBuf>,
    pub(crate) fault: Vec<Fault>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    pub(crate) after_kernels: u64,
    pub(crate) kernel: Option<String>,
    pub(crate) device: Option<u32>,
    #[serde(default)]
    pub(crate) lasting: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FaultKind {
    Flip,
    Skip,
    OutOfMemory,
    Lost,
    Hang,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            devices: 1,
            name: "Fake NVIDIA H200".to_owned(),
            memory_mib: 2048,
            uuids: Vec::new(),
            version: 13_000,
            capability: [9, 0],
            stub: false,
            kernel_ms: 0,
            slowdown: 1,
            queued_us: 0,
            multiprocessors: 132,
            sm_mhz: 1980,
            memory_bus_bits: 6144,
            saturates: false,
            counters: None,
            fault: Vec::new(),
        }
    }
}

impl Scenario {
    /// Returns the scenario in the file that the environment variable names.
    ///
    /// # Panics
    /// Panics if the file cannot be read, because a test must not run with another scenario.
    pub(crate) fn from_environment() -> Self {
        let Some(path) = env::var_os(SCENARIO_VARIABLE) else {
            return Self::default();
        };
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn uuid(&self, device: u32) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[15] = device as u8;
        let digits = self
            .uuids
            .get(device as usize)
            .map(|uuid| uuid.replace("GPU-", "").replace('-', ""));
        let digits = digits.unwrap_or_default();
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
            *byte = str::from_utf8(pair)
                .ok()
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
                .unwrap_or(0);
        }
        bytes
    }

    /// Returns the UUID in NVML's format.
    pub(crate) fn uuid_text(&self, device: u32) -> String {
        let digits = format!("{:032x}", u128::from_be_bytes(self.uuid(device)));
        let groups = [
            &digits[..8],
            &digits[8..12],
            &digits[12..16],
            &digits[16..20],
            &digits[20..],
        ];
        format!("GPU-{}", groups.join("-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_has_every_key() {
        let example: Scenario = toml::from_str(include_str!("../example.toml")).unwrap();
        assert_eq!((example.devices, example.fault.len()), (2, 5));
        assert_eq!((example.uuid(0)[15], example.uuid(1)[15]), (10, 1));
        assert_eq!(example.uuid_text(0), example.uuids[0]);
        assert!(toml::from_str::<Scenario>("device = 1").is_err());
    }
}
