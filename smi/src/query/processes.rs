//! `--query-compute-apps`: the compute processes of a GPU, in the driver's order.

use gpumon_probe::vendor::nvml::query::{Query, SystemQuery};

use super::cell::{Absent, Cell, text, whole_mebibytes};
use super::common;
use super::field::{fields, row_field, with_title};
use super::row::{Row, items, nth_number};
use super::table::Table;

pub(super) static TABLE: Table = Table {
    subjects: &[
        &[with_title(
            "Active Compute Processes",
            "The processes that have a compute context on the GPU.",
            &[],
        )],
        common::SECTIONS,
        &[fields(&[
            row_field(
                "pid",
                nth_number::<0>,
                "The number of the process that computes.",
            ),
            row_field("process_name or name", name, "The name of the process."),
            row_field(
                "used_gpu_memory or used_memory [MiB]",
                used_memory,
                "How much of the GPU's memory the context takes. The driver of Windows does not \
                 know it in WDDM mode, where Windows itself gives out the memory.",
            ),
        ])],
    ],
    // Each process has four numbers: PID, memory, GPU instance and compute instance.
    items: |gpu| items::<4>(&[], gpu.ask(Query::ComputeProcesses)),
};

fn name(row: &Row<'_>) -> Cell {
    text(&row.system(SystemQuery::ProcessName(row.pid()?)))
}

fn used_memory(row: &Row<'_>) -> Cell {
    match row.number_at(1)? {
        -1 => Err(Absent::not_available()),
        bytes => Ok(whole_mebibytes(bytes)),
    }
}
