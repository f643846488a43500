//! The columns of processes.

use gpumon_probe::model::{Owner, Process, Reading, Sample};

use super::{
    Column, column,
    field::{number, plain, rounded, time, word},
    literal, usual,
};

pub(super) struct Row {
    sample_ms: u64,
    gpu: u32,
    gpu_uuid: Option<String>,
    process: Process,
}

/// By GPU and PID.
pub(super) fn rows(sample: &Sample) -> Vec<Row> {
    let rows = sample.gpus.iter().flat_map(|gpu| {
        let processes = gpu.processes.value().into_iter().flatten();
        processes.map(|process| Row {
            sample_ms: sample.at_ms,
            gpu: gpu.index,
            gpu_uuid: gpu.uuid.clone(),
            process: process.clone(),
        })
    });
    rows.collect()
}

/// In the order in which they are shown.
pub(super) static COLUMNS: [Column<Row>; 27] = [
    usual("time", "Time of the sample, UTC.", |row| {
        Some(time(row.sample_ms))
    }),
    literal(column(
        "time_ms",
        "The same in milliseconds since 1970-01-01 UTC.",
        |row| Some(row.sample_ms.to_string()),
    )),
    literal(usual("gpu_index", "NVML index of the GPU.", |row| {
        Some(row.gpu.to_string())
    })),
    column("gpu_uuid", "UUID of the GPU.", |row| row.gpu_uuid.clone()),
    literal(column(
        "mig_gpu_instance",
        "GPU instance (MIG); empty without MIG.",
        |row| Some(row.process.mig?.gpu_instance.to_string()),
    )),
    literal(column(
        "mig_compute_instance",
        "Compute instance (MIG); empty without MIG.",
        |row| Some(row.process.mig?.compute_instance.to_string()),
    )),
    literal(usual("pid", "PID.", |row| {
        Some(row.process.pid.to_string())
    })),
    usual("user", "User.", |row| plain(&row.process.user)),
    column(
        "kind",
        "Kind: compute, graphics or compute_and_graphics.",
        |row| Some(word(&row.process.kind)),
    ),
    literal(column(
        "mps",
        "Whether it uses the Multi-Process Service (MPS).",
        |row| Some(row.process.mps.to_string()),
    )),
    literal(usual("memory_bytes", "Device memory in use.", |row| {
        plain(&row.process.memory_bytes)
    })),
    literal(usual(
        "sm_percent",
        "GPU utilization: time in which its kernels ran.",
        |row| number(&row.process.sm_percent),
    )),
    literal(column(
        "memory_percent",
        "Memory controller utilization: time in which it read or wrote device memory.",
        |row| number(&row.process.memory_percent),
    )),
    literal(column(
        "encoder_percent",
        "Utilization of the video encoder.",
        |row| number(&row.process.encoder_percent),
    )),
    literal(column(
        "decoder_percent",
        "Utilization of the video decoder.",
        |row| number(&row.process.decoder_percent),
    )),
    literal(column(
        "host_memory_bytes",
        "Host memory in use (resident set).",
        |row| plain(&row.process.host_memory_bytes),
    )),
    column("started", "Start time, UTC.", |row| {
        row.process.started_ms.value().map(|at_ms| time(*at_ms))
    }),
    literal(usual("running_seconds", "Time since its start.", |row| {
        let started_ms = row.process.started_ms.value()?;
        Some(rounded(
            row.sample_ms.saturating_sub(*started_ms) as f64 / 1000.0,
        ))
    })),
    usual("name", "Name of the script or program.", |row| {
        plain(&row.process.name)
    }),
    usual(
        "notebook",
        "Notebook of the kernel that it is, or was started by.",
        |row| plain(&owner(row)?.notebook.as_ref()?.path),
    ),
    usual("slurm_job", "Slurm job ID.", |row| {
        Some(owner(row)?.slurm.as_ref()?.job_id.clone())
    }),
    column("pbs_job", "PBS job ID.", |row| {
        Some(owner(row)?.pbs.as_ref()?.job_id.clone())
    }),
    column("lsf_job", "LSF job ID.", |row| {
        Some(owner(row)?.lsf.as_ref()?.job_id.clone())
    }),
    column("pod", "UID of the Kubernetes pod.", |row| {
        Some(owner(row)?.pod.as_ref()?.uid.clone())
    }),
    usual("container", "Container ID.", |row| {
        Some(owner(row)?.container.as_ref()?.id.clone())
    }),
    column("unit", "Systemd service or scope.", |row| {
        owner(row)?.unit.clone()
    }),
    usual("command", "Command line.", |row| {
        plain(&row.process.command)
    }),
];

fn owner(row: &Row) -> Option<&Owner> {
    Reading::value(&row.process.owner)
}
