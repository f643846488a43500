//! The processes on a simulated GPU, which come from its profile or from the scenario: their usage,
//! accounting, and names.

use std::sync::Arc;

use super::{
    EncoderSession, ProcessState, Timeline,
    noise::Noise,
    profile::{Load, Program, Tenant},
    scenario::{AccountedSettings, ProcessSettings},
};
use crate::model::{Absence, AccountedProcess, BatchJob, Notebook, Owner, ProcessKind, Reading};

/// The ratio of memory utilization to kernel utilization, if the scenario does not set the memory
/// utilization.
const MEMORY_PER_SM: f64 = 0.4;

impl Load {
    /// Returns the load of kernels that only wait. `gpu_percent` is the share of time during which
    /// they run.
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
        let names = pick_names(noise, tenant.program);
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
            host_memory_bytes: Some(host_memory_bytes(noise, tenant.program)),
            cpu_percent: waiting_cpu_percent(load.gpu_percent * tenant.part),
            workers: 0,
            blocked: false,
            traced: false,
            started_s: tenant.started_s,
            mps: false,
            mig: None,
            owner: make_owner(tenant.program, pid),
        }
    };
    load.tenants.iter().flatten().map(process).collect()
}

/// Returns the CPU use of a process that waits for its kernels without sleeping.
fn waiting_cpu_percent(sm_percent: f64) -> f64 {
    if sm_percent > 0.0 { 100.0 } else { 0.0 }
}

pub(super) fn list_scenario_processes(
    processes: &[ProcessSettings],
    seconds: f64,
) -> Vec<ProcessState> {
    let running = processes
        .iter()
        .filter(|process| process.is_running(seconds));
    running
        .flat_map(|process| list_table_processes(process, seconds))
        .collect()
}

fn list_table_processes(
    process: &ProcessSettings,
    seconds: f64,
) -> impl Iterator<Item = ProcessState> {
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
        cpu_percent: process.cpu_percent.as_ref().map_or_else(
            || waiting_cpu_percent(sm_percent),
            |curve| curve.value_at(seconds),
        ),
        workers: process.workers,
        blocked: process.blocked,
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

/// Returns the PID for one run of a program. The PID does not change during the run, and is
/// different from the PIDs of all other simulated programs.
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

/// Returns the accounts of the processes that ended before the timeline started.
pub(super) fn list_earlier_accounts(
    accounted: &[AccountedSettings],
    timeline: &Timeline,
) -> Vec<AccountedProcess> {
    let account = |own: &AccountedSettings| AccountedProcess {
        pid: own.pid,
        running: false,
        gpu_percent: own
            .gpu_percent
            .map(f64::from)
            .ok_or(Absence::Unknown)
            .into(),
        memory_percent: own
            .memory_percent
            .map(f64::from)
            .ok_or(Absence::Unknown)
            .into(),
        max_memory_bytes: own
            .max_memory
            .map(|bytes| bytes.0)
            .ok_or(Absence::Unknown)
            .into(),
        time_ms: (own.ran_s.0 * 1000.0) as u64,
        started_us: timeline.unix_ms(-own.ran_s.0) * 1000,
    };
    accounted.iter().map(account).collect()
}

/// Returns the accounts of the processes that are running.
pub(super) fn list_running_accounts(
    processes: &[ProcessState],
    timeline: &Timeline,
) -> Vec<AccountedProcess> {
    let account = |process: &ProcessState| AccountedProcess {
        pid: process.pid,
        running: true,
        gpu_percent: Reading::Now(process.sm_percent.into()),
        memory_percent: Reading::Now(process.memory_percent.into()),
        max_memory_bytes: Reading::Now(process.memory_bytes.unwrap_or(0)),
        time_ms: 0,
        started_us: timeline.unix_ms(process.started_s) * 1000,
    };
    processes.iter().map(account).collect()
}

/// Returns the accounts of the scenario's processes that have started, sorted from oldest to
/// newest.
pub(super) fn list_scenario_accounts(
    processes: &[ProcessSettings],
    seconds: f64,
    timeline: &Timeline,
) -> Vec<AccountedProcess> {
    let mut begun: Vec<_> = processes
        .iter()
        .filter(|process| process.has_started(seconds))
        .collect();
    begun.sort_by(|one, other| one.started_s(seconds).total_cmp(&other.started_s(seconds)));
    begun
        .into_iter()
        .flat_map(|process| list_table_accounts(process, seconds, timeline))
        .collect()
}

fn list_table_accounts(
    process: &ProcessSettings,
    seconds: f64,
    timeline: &Timeline,
) -> impl Iterator<Item = AccountedProcess> + use<> {
    let (running, started_s) = (process.is_running(seconds), process.started_s(seconds));
    let until = process.ended_s().map_or(seconds, |end| end.min(seconds));
    let from = started_s.max(0.0);
    let middle = f64::midpoint(from, until);
    let average = process.sm_percent(middle);
    let memory = process.memory.as_ref().map_or(0.0, |curve| {
        [from, middle, until]
            .map(|at| curve.value_at(at))
            .into_iter()
            .fold(0.0, f64::max)
    });
    let time_ms = if running {
        0
    } else {
        ((until - started_s) * 1000.0) as u64
    };
    let stamp = timeline.unix_ms(started_s) * 1000;
    process.list_pids(seconds).map(move |pid| AccountedProcess {
        pid,
        running,
        gpu_percent: Reading::Now(round_percent(average).into()),
        memory_percent: Reading::Now(round_percent(average * MEMORY_PER_SM).into()),
        max_memory_bytes: Reading::Now(memory as u64),
        time_ms,
        started_us: stamp,
    })
}

#[derive(Debug, Clone, Copy)]
struct ProgramNames {
    /// The program's usual name, which is the name of its script, module, or binary.
    name: &'static str,
    user: &'static str,
    command: &'static str,
}

const USERS: [&str; 6] = ["ana", "bob", "chen", "dilek", "emeka", "freja"];

const TRAINING_COMMANDS: [&str; 4] = [
    "python train.py --config gpt2-medium.yaml --bf16",
    "python -m torch.distributed.run --nproc-per-node 1 finetune.py --lr 3e-4",
    "python train_unet.py --epochs 200 --batch-size 64",
    "python sweep.py --study lr-warmup --resume",
];
const SERVER_COMMANDS: [&str; 3] = [
    "vllm serve meta-llama/Llama-3.1-70B-Instruct --quantization fp8",
    "vllm serve Qwen/Qwen3-32B --max-model-len 32768",
    "vllm serve mistralai/Mistral-Small-24B-Instruct-2501",
];
const LEAK_COMMANDS: [&str; 2] = [
    "python embed_corpus.py --keep-activations",
    "python debug_loss.py --store-graph",
];
const COLLECTIVE_COMMAND: &str = "python pretrain.py --tensor-parallel 2";
const NOTEBOOK_COMMAND: &str = "python -m ipykernel_launcher -f kernel.json";

fn pick_names(noise: Noise, program: Program) -> ProgramNames {
    let index = |purpose: &str, count: usize| {
        (noise.derive_stream(purpose).random_unit(0) * count as f64) as usize
    };
    let user = match program {
        Program::Notebook => index("notebook user", USERS.len()),
        // The ranks of a job all have the same user.
        Program::Collective => 0,
        Program::Training | Program::Server | Program::Leak => index("user", USERS.len()),
    };
    let command = match program {
        Program::Training => TRAINING_COMMANDS[index("command", TRAINING_COMMANDS.len())],
        Program::Server => SERVER_COMMANDS[index("command", SERVER_COMMANDS.len())],
        Program::Leak => LEAK_COMMANDS[index("command", LEAK_COMMANDS.len())],
        Program::Collective => COLLECTIVE_COMMAND,
        Program::Notebook => NOTEBOOK_COMMAND,
    };
    let mut words = command
        .split(' ')
        .filter(|word| *word != "python" && *word != "-m");
    let name = words.next().unwrap_or(command);
    ProgramNames {
        name,
        user: USERS[user],
        command,
    }
}

/// Returns a program's host memory, which is up to a few gigabytes. A server needs more for its
/// weights and buffers than a notebook needs for its data.
fn host_memory_bytes(noise: Noise, program: Program) -> u64 {
    let (least_gib, most_gib) = match program {
        Program::Training | Program::Collective => (4.0, 16.0),
        Program::Server => (8.0, 24.0),
        Program::Leak => (2.0, 6.0),
        Program::Notebook => (0.6, 3.0),
    };
    let gib =
        least_gib + (most_gib - least_gib) * noise.derive_stream("host memory").random_unit(0);
    (gib * f64::from(1 << 30)) as u64
}

/// Returns a program's owner on a shared machine: training runs belong to jobs, servers to
/// services, and notebooks to users.
fn make_owner(program: Program, pid: u32) -> Owner {
    let job = |job_id: String| {
        Some(BatchJob {
            job_id,
            step: Some("0".to_owned()),
            private: false,
        })
    };
    let mut owner = Owner::default();
    match program {
        Program::Training => owner.slurm = job(pid.to_string()),
        // The ranks all belong to the same job.
        Program::Collective => owner.slurm = job("4711".to_owned()),
        Program::Server => owner.unit = Some("vllm.service".to_owned()),
        Program::Leak => {}
        Program::Notebook => {
            owner.notebook = Some(Notebook {
                kernel_id: format!("simulated-{pid}"),
                kernel_name: Some("python3".to_owned()),
                path: Reading::Now("explore.ipynb".to_owned()),
                kernel_pid: pid,
            });
        }
    }
    owner
}
