//! What a GPU is linked by, as NVML says it.

use std::time::Duration;

use gpumon_probe::{
    model::{Absence, NvLink, Reading},
    owner::CommandLines,
};
use serde::Serialize;

use crate::{
    driver::{self, Answer, Driver},
    options::SourceArgs,
};

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

/// Asks NVML. Where that fails or hangs, less is known, and nothing else waits for it.
pub(super) fn read(source: &SourceArgs) -> Driver {
    let is_enough = |answer: &Answer, _| answer.inventory.gpus.len() <= answer.details.len();
    driver::read(source, CommandLines::Own, PATIENCE, is_enough)
}

/// The links of the GPU with this UUID.
pub(super) fn find_links(driver: &Driver, uuid: &str) -> Links {
    let found = driver.answer().and_then(|answer| {
        let mut gpus = answer.inventory.gpus.iter();
        let gpu = gpus.find(|gpu| gpu.uuid.as_deref() == Some(uuid))?;
        Some((gpu, answer.details.get(&gpu.index)))
    });
    let (gpu, details) = (found.map(|found| found.0), found.and_then(|found| found.1));
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
