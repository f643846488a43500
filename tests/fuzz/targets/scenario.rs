//! Fuzzes the parsers of scenarios: for simulated GPUs, the fake NVML library and the fake CUDA
//! driver.

#![no_main]

use gpumon_probe::vendor::sim::{Scenario, World};
use libfuzzer_sys::fuzz_target;

/// The first and the last moment of a timeline, and some moments between them.
const MOMENTS_MS: [u64; 7] = [0, 1, 999, 60_000, 86_400_000, 1 << 42, u64::MAX];

fuzz_target!(|text: &str| {
    fake_cuda::fuzzing::parse_scenario(text);
    let scenario = match Scenario::from_toml(text, "fuzz.toml") {
        Ok(scenario) => scenario,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    scenario.find_latency("nvmlDeviceGetMemoryInfo_v2");
    let world = World::new(scenario);
    let gpus = world.gpu_count();
    for gpu in (0..gpus).take(3) {
        world.gpu_identity(gpu);
        world.path(0, gpu);
        world.fabric_uuid(gpu);
        for at_ms in MOMENTS_MS {
            world.state(gpu, at_ms);
            world.compute_wear(gpu, at_ms);
            world.processes(gpu, at_ms);
            world.is_divided(gpu, at_ms);
        }
    }
});
