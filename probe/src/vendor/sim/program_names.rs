//! The names, users, owners, and host memory of simulated programs.

use crate::model::{BatchJob, Notebook, Owner, Reading};

use super::{noise::Noise, profile::Program};

#[derive(Debug, Clone, Copy)]
pub(super) struct ProgramNames {
    /// The program's usual name, which is the name of its script, module, or binary.
    pub(super) name: &'static str,
    pub(super) user: &'static str,
    pub(super) command: &'static str,
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

pub(super) fn pick_names(noise: Noise, program: Program) -> ProgramNames {
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
pub(super) fn host_memory_bytes(noise: Noise, program: Program) -> u64 {
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
pub(super) fn make_owner(program: Program, pid: u32) -> Owner {
    let job = |job_id: String| {
        Some(BatchJob {
            job_id,
            step: Some("0".to_owned()),
            private: false,
        })
    };
    match program {
        Program::Training => Owner {
            slurm: job(pid.to_string()),
            ..Owner::default()
        },
        // The ranks all belong to the same job.
        Program::Collective => Owner {
            slurm: job("4711".to_owned()),
            ..Owner::default()
        },
        Program::Server => Owner {
            unit: Some("vllm.service".to_owned()),
            ..Owner::default()
        },
        Program::Leak => Owner::default(),
        Program::Notebook => {
            let notebook = Notebook {
                kernel_id: format!("simulated-{pid}"),
                kernel_name: Some("python3".to_owned()),
                path: Reading::Now("explore.ipynb".to_owned()),
                kernel_pid: pid,
            };
            Owner {
                notebook: Some(notebook),
                ..Owner::default()
            }
        }
    }
}
