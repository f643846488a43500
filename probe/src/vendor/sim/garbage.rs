//! Simulation of the impossible readings that a faulty driver can return.

use super::{GpuState, ProcessState};

const IMPOSSIBLE_PERCENT: u32 = 4_000_000;

/// Sets all numbers in a GPU's state to values that are out of range.
pub(super) fn spoil_state(state: &mut GpuState) {
    state.gpu_percent = IMPOSSIBLE_PERCENT;
    state.memory_percent = IMPOSSIBLE_PERCENT;
    state.encoder_percent = IMPOSSIBLE_PERCENT;
    state.decoder_percent = IMPOSSIBLE_PERCENT;
    state.jpeg_percent = IMPOSSIBLE_PERCENT;
    state.ofa_percent = IMPOSSIBLE_PERCENT;
    state.fan_percent = IMPOSSIBLE_PERCENT;
    state.memory_used_bytes = state.memory_total_bytes * 2;
    state.memory_free_bytes = state.memory_total_bytes * 3;
    // Corresponds to the largest 32-bit number of milliwatts.
    state.power_watts = f64::from(u32::MAX) / 1000.0;
    state.power_instant_watts = state.power_watts;
    state.temperature_celsius = 255.0;
    state.memory_temperature_celsius = 255.0;
    state.margin_celsius = -1_000.0;
    state.sm_mhz = u32::MAX;
    state.memory_mhz = u32::MAX;
    state.video_mhz = u32::MAX;
    state.counters.sm_percent = f64::from(IMPOSSIBLE_PERCENT);
    state.counters.occupancy_percent = -1.0;
    state.counters.tensor_percent = f64::NAN;
    spoil_processes(&mut state.processes);
}

/// Sets the utilization of processes to values that are out of range.
pub(super) fn spoil_processes(processes: &mut [ProcessState]) {
    for process in processes {
        process.sm_percent = IMPOSSIBLE_PERCENT;
        process.memory_percent = IMPOSSIBLE_PERCENT;
    }
}
