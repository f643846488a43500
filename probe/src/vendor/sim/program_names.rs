//! The names, users, owners and host memory of simulated programs.

use crate::model::{BatchJob, Notebook, Owner, Reading};

use super::{noise::Noise, profile::Program};

#[derive(Debug, Clone, Copy)]
pub(super) struct ProgramNames {
    /// The usual name of the program: that of its script, its module or its binary.
    pub(super) name: &'static str,
    pub(super) user: &'static str,
    pub(super) command: &'static str,
}

const USERS: [&str; 6] = ["ana", "bob", "chen", "dilek", "emeka", "freja"];

const TRAINING: [&str; 4] = [
    "python train.py --config gpt2-medium.yaml --bf16",
    "python -m torch.distributed.run --nproc-per-node 1 finetune.py --lr 3e-4",
    "python train_unet.py --epochs 200 --batch-size 64",
    "python sweep.py --study lr-warmup --resume",
];
const SERVER: [&str; 3] = [
    "vllm serve meta-llama/Llama-3.1-70B-Instruct --quantization fp8",
    "vllm serve Qwen/Qwen3-32B --max-model-len 32768",
    "vllm serve mistralai/Mistral-Small-24B-Instruct-2501",
];
const LEAK: [&str; 2] = [
    "python embed_corpus.py --keep-activations",
    "python debug_loss.py --store-graph",
];
const COLLECTIVE: &str = "python pretrain.py --tensor-parallel 2";
const NOTEBOOK: &str = "python -m ipykernel_launcher -f kernel.json";

pub(super) fn pick(noise: Noise, program: Program) -> ProgramNames {
    let index =
        |purpose: &str, count: usize| (noise.stream(purpose).unit(0) * count as f64) as usize;
    let user = match program {
        Program::Notebook => index("notebook user", USERS.len()),
        // All ranks of a job have the same user.
        Program::Collective => 0,
        Program::Training | Program::Server | Program::Leak => index("user", USERS.len()),
    };
    let command = match program {
        Program::Training => TRAINING[index("command", TRAINING.len())],
        Program::Server => SERVER[index("command", SERVER.len())],
        Program::Leak => LEAK[index("command", LEAK.len())],
        Program::Collective => COLLECTIVE,
        Program::Notebook => NOTEBOOK,
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

/// Returns a host memory usage of some gigabytes. A server uses more for its weights and buffers
/// than a notebook for its data.
pub(super) fn host_memory_bytes(noise: Noise, program: Program) -> u64 {
    let (least_gib, most_gib) = match program {
        Program::Training | Program::Collective => (4.0, 16.0),
        Program::Server => (8.0, 24.0),
        Program::Leak => (2.0, 6.0),
        Program::Notebook => (0.6, 3.0),
    };
    let gib = least_gib + (most_gib - least_gib) * noise.stream("host memory").unit(0);
    (gib * f64::from(1 << 30)) as u64
}

/// Returns the owner of a program on a shared machine: training runs belong to jobs, servers to
/// services, and notebooks to users.
pub(super) fn owner(program: Program, pid: u32) -> Owner {
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
        // All ranks belong to the same job.
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
