//! Who holds memory.

use std::cmp::Reverse;

use gpumon_probe::{
    model::{GpuSample, MigInstance, Process, ProcessKind, Reading},
    vendor::ReadDepth,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    names::ProcessNames,
    sources::{Origin, Sources},
    tool::Tool,
};
use crate::{describe::unlisted_processes, exit::Failure, snapshot::Need};

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Processes {
    /// Only these GPUs, by index; all of them if omitted.
    gpus: Option<Vec<u32>>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ProcessesAnswer {
    #[serde(flatten)]
    origin: Origin,
    gpus: Vec<Holders>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Holders {
    /// The driver's index.
    index: u32,
    memory_used_bytes: Reading<u64>,
    memory_total_bytes: Reading<u64>,
    /// The processes that hold it, those with the most memory first.
    processes: Vec<Holder>,
    /// The reason why some or all of them are unknown; absent if all are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_because: Option<String>,
    /// How many more hold it and are not listed.
    processes_omitted: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Holder {
    /// As the driver gives it: in a container it may be the host's.
    pid: u32,
    kind: ProcessKind,
    /// Memory of the GPU that it holds.
    memory_bytes: Reading<u64>,
    /// Share of the time in which its kernels ran.
    sm_percent: Reading<f64>,
    /// The MIG instance that it runs in.
    #[serde(skip_serializing_if = "Option::is_none")]
    mig: Option<MigInstance>,
    untrusted: ProcessNames,
}

/// So many tell who holds a GPU.
const MOST: usize = 50;

impl Tool for Processes {
    const NAME: &'static str = "gpu_processes";
    const TITLE: &'static str = "Who holds GPU memory";
    type Answer = ProcessesAnswer;

    fn description() -> String {
        "Which processes hold each GPU now: PID, name, user, notebook, batch job, pod, container or service, memory and \
         share of the GPU's time. Use it to find out who uses a GPU, or why its memory is full. Command lines are not \
         given out."
            .to_owned()
    }

    fn answer(self, sources: &Sources) -> Result<ProcessesAnswer, Failure> {
        let snapshot = sources.snapshot(Need::Nothing, ReadDepth::Full, self.gpus.as_deref())?;
        Ok(ProcessesAnswer {
            origin: Origin::of(&snapshot),
            gpus: snapshot.sample.gpus.iter().map(holders).collect(),
        })
    }
}

fn holders(gpu: &GpuSample) -> Holders {
    let mut processes: Vec<&Process> = gpu.processes.value().into_iter().flatten().collect();
    processes.sort_by_key(|process| (Reverse(process.memory_bytes.value().copied()), process.pid));
    let left_out = processes.len().saturating_sub(MOST) as u64;
    Holders {
        index: gpu.index,
        memory_used_bytes: gpu.memory.used_bytes.clone(),
        memory_total_bytes: gpu.memory.total_bytes.clone(),
        processes: processes.into_iter().take(MOST).map(holder).collect(),
        unknown_because: gpu
            .processes
            .absence()
            .map(ToString::to_string)
            .or_else(|| unlisted_processes(gpu)),
        processes_omitted: left_out + u64::from(gpu.processes_omitted),
    }
}

fn holder(process: &Process) -> Holder {
    Holder {
        pid: process.pid,
        kind: process.kind,
        memory_bytes: process.memory_bytes.clone(),
        sm_percent: process.sm_percent.clone(),
        mig: process.mig,
        untrusted: process.into(),
    }
}
