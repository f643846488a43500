//! The option `--query-accounted-apps`: the resources that processes have used since accounting was
//! enabled. If accounting is disabled, there are no rows.

use gpumon_probe::vendor::nvml::query::Query;

use super::cell::{Absent, Cell, format_whole_mebibytes, read_number};
use super::common;
use super::field::{fields, row_field, with_title};
use super::row::{Row, format_nth_number, split_items};
use super::table::Table;

pub(super) static ACCOUNTED_PROCESSES: Table = Table {
    subjects: &[
        &[with_title(
            "Accounted Graphics/Compute Processes",
            "Processes that the driver keeps accounting data for: those that have, or had, a \
             graphics or compute context on the GPU.\n\nThis option takes one or more fields, \
             separated by commas, and a format.\nFor example:\nnvidia-smi \
             --query-accounted-apps=gpu_name,pid,time,gpu_util,mem_util,max_memory_usage \
             --format=csv\n\nThe fields are:",
            &[],
        )],
        common::COMMON_SECTIONS,
        &[fields(&[
            // Only vGPU guests have such a number, and the driver accounts for their processes
            // separately.
            row_field(
                "vgpu_instance",
                |_| Err(Absent::new_not_available()),
                "The number of the virtual GPU on which the process ran.",
            ),
            row_field("pid", format_nth_number::<0>, "The process ID."),
            row_field(
                "gpu_utilization or gpu_util [%]",
                format_stat::<0>,
                "Share of the process's lifetime in which at least one of its kernels ran on the \
                 GPU, in percent.",
            ),
            row_field(
                "mem_utilization or mem_util [%]",
                format_stat::<1>,
                "Share of the process's lifetime in which it read or wrote the GPU's memory, in \
                 percent.",
            ),
            row_field(
                "max_memory_usage [MiB]",
                |row| Ok(format_whole_mebibytes(read_stat(row, 2)?)),
                "The peak GPU memory of the process, in MiB.",
            ),
            row_field(
                "time [ms]",
                format_stat::<3>,
                "The time for which the process had its context, in milliseconds. It is 0 until \
                 the process ends.",
            ),
        ])],
    ],
    items: |gpu| split_items::<1>(&[], gpu.run_query(Query::AccountingPids)),
};

/// Returns a number from the answer to [`Query::AccountingStats`].
fn read_stat(row: &Row<'_>, place: usize) -> Result<i128, Absent> {
    match read_number(&row.run_query(Query::AccountingStats(row.pid()?)), place)? {
        -1 => Err(Absent::new_not_available()),
        known => Ok(known),
    }
}

fn format_stat<const PLACE: usize>(row: &Row<'_>) -> Cell {
    Ok(read_stat(row, PLACE)?.to_string())
}
