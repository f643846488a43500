//! The processes on a simulated GPU, which come from its profile or from the scenario.

use std::sync::Arc;

use crate::model::{BatchJob, Owner, ProcessKind};

use super::{
    EncoderSession, ProcessState,
    noise::Noise,
    profile::{Load, Program, Tenant},
    program_names,
    scenario::ProcessSettings,
};

/// The ratio of memory utilization to kernel utilization, if the scenario does not set the memory
/// utilization.
const MEMORY_PER_SM: f64 = 0.4;

impl Load {
    /// Returns the load for kernels that only wait, during the given share of time.
    pub(super) fn from_waiting_kernels(gpu_percent: f64) -> Self {
        Self {
            gpu_percent,
            waits: true,
            ..Self::default()
        }
    }

    pub(super) fn from_utilization(gpu_percent: f64) -> Self {
        let gpu_percent = gpu_percent.min(100.0);
        Self {
            gpu_percent,
            memory_percent: gpu_percent * MEMORY_PER_SM,
            demand: gpu_percent / 100.0 * 1.1,
            ..Self::default()
        }
    }
}

pub(super) fn list_profile_processes(
    load: &Load,
    noise: Noise,
    gpu: u32,
    usable_bytes: u64,
) -> Vec<ProcessState> {
    let process = |tenant: &Tenant| {
        let names = program_names::pick_names(noise, tenant.program);
        let pid = make_pid(noise, gpu, tenant);
        ProcessState {
            pid,
            kind: ProcessKind::Compute,
            memory_bytes: Some((usable_bytes as f64 * tenant.memory) as u64),
            sm_percent: round_percent(load.gpu_percent * tenant.part),
            memory_percent: round_percent(load.memory_percent * tenant.part),
            encoder_percent: round_percent(load.encoder_percent * tenant.part),
            decoder_percent: round_percent(load.decoder_percent * tenant.part),
            encoder_sessions: Arc::default(),
            name: Some(names.name.into()),
            user: Some(names.user.into()),
            command: Some(names.command.into()),
            host_memory_bytes: Some(program_names::host_memory_bytes(noise, tenant.program)),
            traced: false,
            started_s: tenant.started_s,
            mps: false,
            mig: None,
            owner: program_names::make_owner(tenant.program, pid),
        }
    };
    load.tenants.iter().flatten().map(process).collect()
}

pub(super) fn list_scenario_processes(
    processes: &[ProcessSettings],
    seconds: f64,
) -> Vec<ProcessState> {
    let running = processes
        .iter()
        .filter(|process| process.is_running(seconds));
    running
        .flat_map(|process| expand_table(process, seconds))
        .collect()
}

fn expand_table(process: &ProcessSettings, seconds: f64) -> impl Iterator<Item = ProcessState> {
    let sm_percent = process.sm_percent(seconds);
    let memory_bytes = process
        .memory
        .as_ref()
        .map(|curve| curve.value_at(seconds) as u64);
    let host_memory_bytes = process
        .host_memory
        .as_ref()
        .map(|curve| curve.value_at(seconds) as u64);
    let slurm = process.slurm_job.as_ref().map(|job_id| BatchJob {
        job_id: job_id.to_string(),
        step: None,
        private: false,
    });
    let owner = Owner {
        slurm,
        ..Owner::default()
    };
    let started_s = process.started_s(seconds);
    let (encoder_percent, decoder_percent) = (
        process.encoder_percent(seconds),
        process.decoder_percent(seconds),
    );
    let encoder_sessions: Arc<[_]> = process
        .encoder_sessions
        .iter()
        .map(EncoderSession::from)
        .collect();
    process.list_pids(seconds).map(move |pid| ProcessState {
        pid,
        kind: process.kind,
        memory_bytes,
        sm_percent: round_percent(sm_percent),
        memory_percent: round_percent(if process.waits {
            0.0
        } else {
            sm_percent * MEMORY_PER_SM
        }),
        encoder_percent: round_percent(encoder_percent),
        decoder_percent: round_percent(decoder_percent),
        encoder_sessions: Arc::clone(&encoder_sessions),
        name: process.name.clone(),
        user: process.user.clone(),
        command: process.command.clone(),
        host_memory_bytes,
        traced: process.traced,
        started_s,
        mps: process.mps,
        mig: process.mig(),
        owner: owner.clone(),
    })
}

/// Scales the processes' memory so that the sum is `used_bytes`.
pub(super) fn scale_memory(processes: &mut [ProcessState], used_bytes: u64) {
    let held: u64 = processes
        .iter()
        .filter_map(|process| process.memory_bytes)
        .sum();
    if held == 0 || held == used_bytes {
        return;
    }
    for bytes in processes
        .iter_mut()
        .filter_map(|process| process.memory_bytes.as_mut())
    {
        *bytes = (*bytes as f64 * used_bytes as f64 / held as f64) as u64;
    }
}

/// The lowest PID of simulated processes. Linux assigns only lower PIDs to real processes, so that
/// the two cannot be confused.
const FIRST_SIMULATED_PID: u32 = 1 << 22;

/// Returns the PID for a program's run. It stays the same during the run, and no other simulated
/// program has it.
fn make_pid(noise: Noise, gpu: u32, tenant: &Tenant) -> u32 {
    let slot = match tenant.program {
        Program::Notebook => 1,
        Program::Training | Program::Server | Program::Leak | Program::Collective => 0,
    };
    FIRST_SIMULATED_PID
        + gpu * 1_000
        + slot * 500
        + (noise.derive_stream("pid").random_bits(tenant.run) % 500) as u32
}

/// Rounds to a whole percentage, as sensors do.
pub(super) fn round_percent(share: f64) -> u32 {
    share.clamp(0.0, 100.0).round() as u32
}
