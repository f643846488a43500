//! What a GPU is linked by, as NVML says it.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use gpumon_probe::{
    model::{Absence, GpuDetails, Inventory, NvLink, Reading, Record},
    owner::CommandLines,
};
use serde::Serialize;

use crate::options::SourceArgs;

/// How long NVML may take, which hangs where a GPU is sick.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Links {
    /// The highest that board and slot can do.
    pub(super) pcie_generation: Reading<u32>,
    pub(super) pcie_width: Reading<u32>,
    /// That are up.
    pub(super) nvlinks: Reading<u32>,
    /// Of all of them together, each way.
    pub(super) nvlink_bytes_per_second: Reading<f64>,
}

/// What NVML has told of all GPUs.
#[derive(Debug, Default)]
pub(super) struct Known {
    inventory: Option<Inventory>,
    details: BTreeMap<u32, GpuDetails>,
}

impl Known {
    fn is_complete(&self) -> bool {
        self.inventory
            .as_ref()
            .is_some_and(|inventory| inventory.gpus.len() <= self.details.len())
    }
}

/// Asks NVML. Where that fails or hangs, less is known, and nothing else waits for it.
pub(super) fn read(source: &SourceArgs) -> Known {
    // What is not known is shown as such; `gpumon doctor` says why.
    let told = source.records(CommandLines::Own);
    let deadline = Instant::now() + PATIENCE;
    let mut known = Known::default();
    while !known.is_complete() {
        match told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok(Record::Inventory(inventory))) => known.inventory = Some(inventory),
            Ok(Ok(Record::Details(details))) => drop(known.details.insert(details.index, details)),
            Ok(Ok(_)) => {}
            Ok(Err(_)) | Err(_) => break,
        }
    }
    known
}

/// The links of the GPU with this UUID.
pub(super) fn of(known: &Known, uuid: &str) -> Links {
    let gpus = known.inventory.iter().flat_map(|inventory| &inventory.gpus);
    let gpu = gpus
        .into_iter()
        .find(|gpu| gpu.uuid.as_deref() == Some(uuid));
    let details = gpu.and_then(|gpu| known.details.get(&gpu.index));
    let up: Reading<Vec<NvLink>> = details.map_or_else(unknown, |details| details.nvlinks.clone());
    let up = up.map(|links| {
        links
            .into_iter()
            .filter(|link| link.active.value() == Some(&true))
            .collect::<Vec<_>>()
    });
    Links {
        pcie_generation: gpu.map_or_else(unknown, |gpu| gpu.board.pcie_max_generation.clone()),
        pcie_width: gpu.map_or_else(unknown, |gpu| gpu.board.pcie_max_width.clone()),
        // Not `sum`, which is -0 of nothing.
        nvlink_bytes_per_second: up.clone().map(|up| {
            up.iter()
                .filter_map(|link| link.bytes_per_second.value())
                .fold(0.0, |sum, rate| sum + rate)
        }),
        nvlinks: up.map(|up| up.len() as u32),
    }
}

fn unknown<T>() -> Reading<T> {
    Reading::Absent(Absence::Unknown)
}
