//! Memory and activity of real processes on a simulated GPU through the fake CUDA driver.

use std::sync::Arc;

use fake_gpu_state::Holder;
use gpumon_probe::{
    model::{Owner, ProcessKind, ThrottleCause},
    vendor::sim::{GpuState, MAX_SM_MHZ, ProcessState},
};

use crate::notes::PeriodActivity;

/// Adds real processes and their memory to the state. If the scenario's GPU is idle, also sets its
/// clock to `sm_mhz` or the maximum.
pub(crate) fn add_real_processes(
    state: Arc<GpuState>,
    holders: &[Holder],
    sm_mhz: Option<u32>,
) -> Arc<GpuState> {
    if holders.is_empty() {
        return state;
    }
    let mut state = Arc::unwrap_or_clone(state);
    let held: u64 = holders.iter().map(|holder| holder.bytes).sum();
    state.memory_used_bytes += held;
    state.memory_free_bytes = state.memory_free_bytes.saturating_sub(held);
    state.processes.extend(
        holders
            .iter()
            .map(|holder| make_compute_process(holder.pid, Some(holder.bytes), 0)),
    );
    if state
        .throttle_reasons
        .iter()
        .any(|reason| reason.cause() == ThrottleCause::Idle)
    {
        // The driver reduces the clock only while no process uses the GPU.
        state.sm_mhz = sm_mhz.unwrap_or(MAX_SM_MHZ);
    }
    Arc::new(state)
}

/// Replaces the scenario's activity in the state with the latest recorded activity of real
/// processes.
pub(crate) fn apply_period_activity(state: Arc<GpuState>, note: &PeriodActivity) -> Arc<GpuState> {
    let mut state = Arc::unwrap_or_clone(state);
    (state.gpu_percent, state.memory_percent) = (note.gpu_percent, note.memory_percent);
    if note.gpu_percent > 0 {
        state
            .throttle_reasons
            .retain(|reason| reason.cause() != ThrottleCause::Idle);
    }
    Arc::new(state)
}

/// Returns a compute process. Its other properties come from `/proc`.
pub(crate) fn make_compute_process(
    pid: u32,
    memory_bytes: Option<u64>,
    sm_percent: u32,
) -> ProcessState {
    ProcessState {
        pid,
        kind: ProcessKind::Compute,
        memory_bytes,
        sm_percent,
        memory_percent: 0,
        encoder_percent: 0,
        decoder_percent: 0,
        encoder_sessions: Arc::default(),
        name: None,
        user: None,
        command: None,
        host_memory_bytes: None,
        cpu_percent: 0.0,
        workers: 0,
        blocked: false,
        traced: false,
        started_s: 0.0,
        mps: false,
        mig: None,
        owner: Owner::default(),
    }
}
