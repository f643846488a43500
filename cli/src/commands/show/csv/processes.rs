//! The columns of processes.

use std::borrow::Cow;

use gpumon_probe::model::{Owner, Process, Reading};

use super::{
    super::look::Look,
    Column, Read,
    field::{number, plain, rounded, time, word},
};

/// What one row is about.
pub(super) struct Row {
    sample_ms: u64,
    gpu: u32,
    gpu_uuid: Option<String>,
    process: Process,
}

/// By GPU and PID.
pub(super) fn rows(look: &Look) -> Vec<Row> {
    let rows = look.sample.gpus.iter().flat_map(|gpu| {
        let processes = gpu.processes.value().into_iter().flatten();
        processes.map(|process| Row {
            sample_ms: look.sample.at_ms,
            gpu: gpu.index,
            gpu_uuid: gpu.uuid.clone(),
            process: process.clone(),
        })
    });
    rows.collect()
}

const fn column(name: &'static str, help: &'static str, read: fn(&Row) -> Option<String>) -> Column<Row> {
    Column { name: Cow::Borrowed(name), help, usual: false, read: Read::Of(read) }
}

const fn usual(name: &'static str, help: &'static str, read: fn(&Row) -> Option<String>) -> Column<Row> {
    Column { name: Cow::Borrowed(name), help, usual: true, read: Read::Of(read) }
}

/// In the order in which they are shown.
pub(super) static COLUMNS: [Column<Row>; 23] = [
    usual("time", "when the sample was taken, UTC", |row| Some(time(row.sample_ms))),
    usual("gpu_index", "NVML's index of the GPU", |row| Some(row.gpu.to_string())),
    column("gpu_uuid", "the GPU's UUID", |row| row.gpu_uuid.clone()),
    column("mig_gpu_instance", "the MIG instance it runs in; empty on a whole GPU", |row| {
        Some(row.process.mig?.gpu_instance.to_string())
    }),
    column("mig_compute_instance", "the compute instance within it", |row| {
        Some(row.process.mig?.compute_instance.to_string())
    }),
    usual("pid", "its PID", |row| Some(row.process.pid.to_string())),
    usual("user", "its login name", |row| plain(&row.process.user)),
    column("kind", "compute, graphics or compute_and_graphics", |row| Some(word(&row.process.kind))),
    column("mps", "whether it computes through the Multi-Process Service", |row| Some(row.process.mps.to_string())),
    usual("memory_bytes", "device memory that it holds", |row| plain(&row.process.memory_bytes)),
    usual("sm_percent", "time in which its kernels ran", |row| number(&row.process.sm_percent)),
    column("memory_percent", "time in which it read or wrote device memory", |row| number(&row.process.memory_percent)),
    column("encoder_percent", "video encoder", |row| number(&row.process.encoder_percent)),
    column("decoder_percent", "video decoder", |row| number(&row.process.decoder_percent)),
    column("started", "when it started, UTC", |row| row.process.started_ms.value().map(|at_ms| time(*at_ms))),
    usual("running_seconds", "for how long it has been running", |row| {
        let started_ms = row.process.started_ms.value()?;
        Some(rounded(row.sample_ms.saturating_sub(*started_ms) as f64 / 1000.0))
    }),
    usual("name", "the script or the program", |row| plain(&row.process.name)),
    usual("notebook", "the notebook whose kernel it is or was started by", |row| {
        plain(&owner(row)?.notebook.as_ref()?.path)
    }),
    usual("slurm_job", "the Slurm job it runs in", |row| Some(owner(row)?.slurm.as_ref()?.job_id.clone())),
    column("pod", "the Kubernetes pod it runs in", |row| Some(owner(row)?.pod.as_ref()?.uid.clone())),
    usual("container", "the container it runs in", |row| Some(owner(row)?.container.as_ref()?.id.clone())),
    column("unit", "the systemd service or scope it was started by", |row| owner(row)?.unit.clone()),
    usual("command", "its command line", |row| plain(&row.process.command)),
];

fn owner(row: &Row) -> Option<&Owner> {
    Reading::value(&row.process.owner)
}
