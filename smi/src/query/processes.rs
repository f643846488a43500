//! The option `--query-compute-apps`, which lists a GPU's compute processes in the driver's order.

use gpumon_probe::vendor::nvml::query::{Query, SystemQuery};

use super::cell::{Absent, Cell, format_text, format_whole_mebibytes};
use super::common;
use super::field::{fields, row_field, with_title};
use super::row::{Row, format_nth_number, split_items};
use super::table::Table;

pub(super) static COMPUTE_PROCESSES: Table = Table {
    subjects: &[
        &[with_title(
            "Active Compute Processes",
            "Processes that have a compute context on the GPU.",
            &[],
        )],
        common::COMMON_SECTIONS,
        &[fields(&[
            row_field("pid", format_nth_number::<0>, "The process ID."),
            row_field(
                "process_name or name",
                format_name,
                "The name of the process.",
            ),
            row_field(
                "used_gpu_memory or used_memory [MiB]",
                format_used_memory,
                "The GPU memory that the context uses, in MiB. It is not available on Windows in \
                 WDDM mode, because Windows manages the memory.",
            ),
        ])],
    ],
    // Each process in the answer consists of four numbers: PID, memory, GPU instance, and compute
    // instance.
    items: |gpu| split_items::<4>(&[], gpu.run_query(Query::ComputeProcesses)),
};

fn format_name(row: &Row<'_>) -> Cell {
    format_text(&row.run_system_query(SystemQuery::ProcessName(row.pid()?)))
}

fn format_used_memory(row: &Row<'_>) -> Cell {
    match row.number_at(1)? {
        -1 => Err(Absent::new_not_available()),
        bytes => Ok(format_whole_mebibytes(bytes)),
    }
}
