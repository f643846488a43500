//! What processes of this machine hold of a simulated GPU, through the fake CUDA driver.

use std::sync::Arc;

use fake_memory::Holder;
use gpumon_probe::{
    model::{Owner, ProcessKind},
    source::sim::{GpuState, ProcessState},
};

/// The state with their memory and with themselves in it.
pub(crate) fn with_holders(state: Arc<GpuState>, holders: &[Holder]) -> Arc<GpuState> {
    if holders.is_empty() {
        return state;
    }
    let mut state = Arc::unwrap_or_clone(state);
    let held: u64 = holders.iter().map(|holder| holder.bytes).sum();
    state.memory_used_bytes += held;
    state.memory_free_bytes = state.memory_free_bytes.saturating_sub(held);
    state.processes.extend(holders.iter().map(process));
    state.processes.sort_by_key(|process| process.pid);
    Arc::new(state)
}

/// A process that computes, of which everything else is read where processes of this machine are.
fn process(holder: &Holder) -> ProcessState {
    ProcessState {
        pid: holder.pid,
        kind: ProcessKind::Compute,
        memory_bytes: Some(holder.bytes),
        sm_percent: 0,
        memory_percent: 0,
        encoder_percent: 0,
        decoder_percent: 0,
        name: None,
        user: None,
        command: None,
        started_s: 0.0,
        mps: false,
        mig: None,
        owner: Owner::default(),
    }
}
